"""Frames inside pytest: the fixture `veo_frames` and the marker `veo_jitter`.

numpy and the frames room are imported when a test uses them, never before.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Generator
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from typing import NamedTuple

import pytest

from pytest_veo.errors import BadSetting
from pytest_veo.errors import VeoError
from pytest_veo.units import parse_ns


if TYPE_CHECKING:
    from pytest_veo.frames.baseline import History
    from pytest_veo.frames.budget import JitterBudget
    from pytest_veo.frames.collection import Frames
    from pytest_veo.frames.noise import MachineNoise
    from pytest_veo.frames.session import FrameReport


MARKER = "veo_jitter"
FIXTURE = "veo_frames"
INI_DEFAULTS = "veo_jitter"
INI_NULL = "veo_jitter_null"
INI_BASELINE = "veo_jitter_baseline"
OPTION_UPDATE = "--veo-jitter-update-baseline"
OPTION_BOTH = "--veo-update-baseline"  # of the leak check's plugin
SECTION = "veo frames"
REPORT_ATTRIBUTE = "veo_frames"
"""On the call report of a test that recorded frames: a list of plain dicts."""

_MARKER_LINE = (
    "veo_jitter(*, target_fps, p50_ms, p95_ms, p99_ms, max_ms, max_over=(ms, rate), "
    "max_drop_rate, max_drops_per_s=(warn, critical, window_s), max_hitches_per_min, "
    "max_mad_ms, max_phase_error_ms, max_order_error, baseline, min_frames, warmup, "
    "event, on_inconclusive, series, frames_from, ...): what the frames recorded by "
    "the fixture veo_frames may do; a test whose frames do more fails."
)

_frames: pytest.StashKey[Frames] = pytest.StashKey()
_budgets: pytest.StashKey[dict[str | None, JitterBudget]] = pytest.StashKey()
_captures: pytest.StashKey[list[_Capture]] = pytest.StashKey()
_report: pytest.StashKey[FrameReport] = pytest.StashKey()
_earlier: pytest.StashKey[Mapping[tuple[str, str], History]] = pytest.StashKey()
_null_ns: pytest.StashKey[int] = pytest.StashKey()


class _Capture(NamedTuple):
    """A file whose frames a marker wants judged."""

    path: Path
    series: str | None
    """What to call its series; None leaves the file's own name."""
    choice: dict[str, object]
    """Which of its series: `process`, `swapchain`, `event`."""


# The class is reached through an attribute that type checkers do not follow.
class JitterExceeded(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """A test's frames are over their budget, or prove nothing where they must."""

    # As pytest's own outcomes do it: summary lines are short, and the figure counts.
    __module__ = "builtins"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option and the ini keys."""
    parser.getgroup("veo", "GPU regression testing").addoption(
        OPTION_UPDATE,
        action="store_true",
        help=f"add the frames of passed tests to the file that {INI_BASELINE} names; "
        f"{OPTION_BOTH} does so, too",
    )
    parser.addini(
        INI_DEFAULTS,
        "defaults for the veo_jitter marker: one `name = value` a line",
        type="linelist",
        default=[],
    )
    parser.addini(
        INI_NULL,
        "how long the null loop before a veo_jitter test runs; 0 ms for none",
        default="200 ms",
    )
    parser.addini(
        INI_BASELINE,
        "JSON file with the frame statistics of earlier runs",
        default="",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker.

    Raises:
        pytest.UsageError: the length of the null loop is no duration.
    """
    config.addinivalue_line("markers", _MARKER_LINE)
    try:
        config.stash[_null_ns] = parse_ns(config.getini(INI_NULL), "ms")
    except VeoError as error:
        raise pytest.UsageError(f"{INI_NULL}: {error}") from None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Read every marker before the first test runs.

    Raises:
        pytest.UsageError: a marker, or an ini line, makes no sense.
    """
    records = False
    for item in items:
        marked = item.get_closest_marker(MARKER) is not None
        if marked:
            _read_markers(config, item)
        records = records or marked or FIXTURE in getattr(item, "fixturenames", ())
    if records:
        config.pluginmanager.register(JitterJudge(), "veo-jitter")


@pytest.fixture
def veo_frames(request: pytest.FixtureRequest) -> Iterator[Frames]:
    """Record frames: `veo_frames.tick()`, `with veo_frames.frame():`, `.add(t_ns)`.

    The marker `veo_jitter` says what they may do. Further series of the same test:
    `veo_frames.series("decode", event="decode")`.
    """
    from pytest_veo.frames.collection import Frames
    from pytest_veo.frames.series import Event

    budgets = request.node.stash.get(_budgets, {})
    events = [budget.event for budget in budgets.values() if budget.event is not None]
    frames = Frames(event=events[0] if events else Event.FRAME)
    request.node.stash[_frames] = frames
    yield frames
    del request.node.stash[_frames]


class JitterJudge:
    """Judges frames; registered only when a test of the session records any."""

    # Innermost: only the test's own body is inside, and a failure raised here is one of
    # the call phase, so that xfail, junit and xdist see nothing unusual.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Judge the frames once the body has returned."""
        budgets = item.stash.get(_budgets, {})
        if not budgets and item.stash.get(_frames, None) is None:
            return (yield)
        from pytest_veo.frames import noise
        from pytest_veo.frames import session

        machine = _null_loop(item.config) if budgets else None
        before = noise.read_waiting()
        try:
            result = yield
        except BaseException:
            _describe(item)
            raise
        if getattr(item, "_excinfo", None):
            # A unittest case keeps its failure to itself until the report is made.
            _describe(item)
            return result
        if machine is not None:
            machine = before.until(noise.read_waiting(), machine)
        frames = _with_captures(item)
        if frames is None:
            raise JitterExceeded(session.NO_FRAMES, pytrace=False)
        _judge(item, frames, budgets, machine)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the record on the call report; plain values cross xdist unaided."""
        report = yield
        judged = item.stash.get(_report, None)
        if call.when == "call" and judged is not None:
            setattr(report, REPORT_ATTRIBUTE, judged.records)
            if judged.section:
                report.sections.append((SECTION, judged.section))
            del item.stash[_report]
        return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell of sweeps, and of tests whose frames proved nothing."""
    told = [
        (report.nodeid, text)
        for report in _reports(terminalreporter)
        for title, text in report.sections
        if title == SECTION
    ]
    if not told:
        return
    terminalreporter.section(SECTION)
    for nodeid, text in told:
        terminalreporter.write_line(nodeid, bold=True)
        terminalreporter.write_line(text)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Add this run to the baseline, when that was asked for."""
    config = session.config
    is_worker = hasattr(config, "workerinput")
    asked = config.getoption(OPTION_UPDATE) or config.getoption(OPTION_BOTH, False)
    if is_worker or not asked:
        return
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    path = _baseline_path(config)
    if path is None or terminal is None:
        return
    from pytest_veo.frames.baseline import RUNS_KEPT
    from pytest_veo.frames.baseline import add_to_history
    from pytest_veo.frames.baseline import entry_from_record

    entries = {
        f"{report.nodeid}::{record['series']}": entry_from_record(record)
        for report in _reports(terminal)
        if report.passed
        for record in getattr(report, REPORT_ATTRIBUTE, ())
        if "series" in record
    }
    add_to_history(path, entries, RUNS_KEPT)


def _judge(
    item: pytest.Item,
    frames: Frames,
    budgets: Mapping[str | None, JitterBudget],
    machine: MachineNoise | None,
) -> None:
    from pytest_veo.frames.session import judge_test

    def history(series: str) -> History:
        return _history(item, series)

    try:
        report = judge_test(frames, budgets, noise=machine, history=history)
        if report.failed_outright and machine is not None and machine.frames:
            # What was quiet before may be loud by now: look again before accusing.
            machine = machine.worse(_null_loop(item.config))
            report = judge_test(frames, budgets, noise=machine, history=history)
    except VeoError as error:
        raise JitterExceeded(f"veo_jitter: {error}", pytrace=False) from None
    item.stash[_report] = report
    if report.broken:
        raise JitterExceeded(report.failure, pytrace=False)


def _with_captures(item: pytest.Item) -> Frames | None:
    """What the test recorded, and the files that its markers name.

    The files are read after the body: it may be what wrote them.
    """
    frames = item.stash.get(_frames, None)
    captures = item.stash.get(_captures, [])
    if not captures:
        return frames
    from pytest_veo.frames.collection import Frames

    if frames is None:
        frames = Frames()
    # By name: the room of the readers is not needed by those who record.
    registry = importlib.import_module("pytest_veo.readers.registry")
    try:
        for capture in captures:
            series = registry.read_series(capture.path, **capture.choice)
            name = capture.series or series.name
            frames.use(dataclasses.replace(series, name=name))
    except (VeoError, OSError) as error:
        raise JitterExceeded(f"{MARKER}: {error}", pytrace=False) from None
    return frames


def _describe(item: pytest.Item) -> None:
    from pytest_veo.frames.session import describe_test

    frames = item.stash.get(_frames, None)
    if frames is None:
        return
    try:
        item.stash[_report] = describe_test(frames)
    except VeoError as error:
        # The test failed by itself; that its frames are unusable is worth a line.
        item.add_report_section("call", "veo frames", f"not recorded: {error}")


def _null_loop(config: pytest.Config) -> MachineNoise:
    from pytest_veo.frames.noise import MachineNoise
    from pytest_veo.frames.noise import describe_null
    from pytest_veo.frames.noise import null_loop

    duration_ns = config.stash[_null_ns]
    if duration_ns == 0:
        return MachineNoise(frames=0)
    return describe_null(null_loop(duration_ns))


def _history(item: pytest.Item, series: str) -> History:
    """From the file of the ini key, else from the runs that --veo-baseline names."""
    path = _baseline_path(item.config)
    if path is not None:
        from pytest_veo.frames.baseline import read_history

        return read_history(path, f"{item.nodeid}::{series}")
    if _earlier not in item.config.stash:
        from pytest_veo.archive import frame_history

        item.config.stash[_earlier] = frame_history.earlier(item.config, INI_BASELINE)
    return item.config.stash[_earlier].get((item.nodeid, series), {})


def _baseline_path(config: pytest.Config) -> Path | None:
    text = config.getini(INI_BASELINE)
    return config.rootpath / text if text else None


def _read_markers(config: pytest.Config, item: pytest.Item) -> None:
    """Keep the budget of each named series, under None that of all others.

    Markers of a class or module are defaults for those of its tests.

    Raises:
        pytest.UsageError: a marker makes no sense; the message names the test.
    """
    from pytest_veo.frames.arguments import budget_from
    from pytest_veo.frames.arguments import read_lines

    try:
        defaults = read_lines(config.getini(INI_DEFAULTS))
        asked: dict[str | None, dict[str, object]] = {}
        for marker in reversed(list(item.iter_markers(MARKER))):
            if marker.args:
                raise BadSetting(f"{marker.args[0]!r}: name every argument")
            series = _text("series", marker.kwargs.get("series"))
            arguments = {k: v for k, v in marker.kwargs.items() if k != "series"}
            asked.setdefault(series, dict(defaults)).update(arguments)
        item.stash[_captures] = [
            capture
            for series, arguments in asked.items()
            if (capture := _take_capture(config, series, arguments)) is not None
        ]
        item.stash[_budgets] = {
            series: budget_from(arguments) for series, arguments in asked.items()
        }
    except VeoError as error:
        raise pytest.UsageError(f"{item.nodeid}: {MARKER}: {error}") from None


def _take_capture(
    config: pytest.Config, series: str | None, arguments: dict[str, object]
) -> _Capture | None:
    """The capture that a marker names; its arguments are taken out of the others."""
    path = arguments.pop("frames_from", None)
    choice: dict[str, object] = {
        name: arguments.pop(name)
        for name in ("process", "swapchain")
        if name in arguments
    }
    if path is None:
        if choice:
            name = next(iter(choice))
            raise BadSetting(f"{name} chooses among the series of frames_from: name it")
        return None
    if not isinstance(path, str | Path):
        raise BadSetting(f"frames_from={path!r}: it must be the path of a capture")
    if arguments.get("event") is not None:
        choice["event"] = arguments["event"]
    return _Capture(config.rootpath / path, series, choice)


def _text(name: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise BadSetting(f"{name}={value!r}: it must be a series' name")
    return value


def _reports(terminal: pytest.TerminalReporter) -> list[pytest.TestReport]:
    return [
        report
        for reports in terminal.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
    ]
