"""Frames inside pytest: the fixture `veo_frames` and the marker `veo_jitter`.

numpy and the frames room are imported when a test uses them, never before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from collections.abc import Iterator
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from pytest_veo import frames_ahead
from pytest_veo.errors import VeoError
from pytest_veo.frames_from import NamedCapture
from pytest_veo.frames_from import add_captures
from pytest_veo.frames_from import register_readers
from pytest_veo.frames_markers import INI_DEFAULTS
from pytest_veo.frames_markers import MARKER
from pytest_veo.frames_markers import read_markers
from pytest_veo.frames_markers import variant_of
from pytest_veo.frames_reports import SECTION
from pytest_veo.frames_reports import FrameReports
from pytest_veo.units import format_ns
from pytest_veo.units import parse_ns


if TYPE_CHECKING:
    from pathlib import Path

    from pytest_veo.frames.baseline import History
    from pytest_veo.frames.budget import JitterBudget
    from pytest_veo.frames.collection import Frames
    from pytest_veo.frames.noise import MachineNoise
    from pytest_veo.frames.session import FrameReport
    from pytest_veo.readers.preview_streams import PreviewStreams


FIXTURE = "veo_frames"
LONGEST_NULL_NS = 60_000_000_000
WATCH_PLUGIN = "veo-session"
"""Registered where the leak check watches tests."""
RERUN_PLUGIN = "veo-rerun"
"""Registered while the leak check runs a test again."""
INI_NULL = "veo_jitter_null"
INI_BASELINE = "veo_jitter_baseline"
OPTION_UPDATE = "--veo-jitter-update-baseline"
OPTION_BOTH = "--veo-update-baseline"
"""Of the leak check's plugin: updates its baseline and this one."""

_MARKER_LINE = (
    "veo_jitter(*, target_fps, p50_ms, p95_ms, p99_ms, max_ms, max_over=(ms, rate), "
    "max_drop_rate, max_drops_per_s=(warn, critical, window_s), max_hitches_per_min, "
    "max_mad_ms, max_phase_error_ms, max_order_error, baseline, min_frames, warmup, "
    "event, on_inconclusive, series, frames_from, ...): what the frames recorded by "
    "the fixture veo_frames may do; a test whose frames do more fails."
)

_frames: pytest.StashKey[Frames] = pytest.StashKey()
_budgets: pytest.StashKey[dict[str | None, JitterBudget]] = pytest.StashKey()
_captures: pytest.StashKey[list[NamedCapture]] = pytest.StashKey()
_report: pytest.StashKey[FrameReport] = pytest.StashKey()
_earlier: pytest.StashKey[Mapping[tuple[str, str], History]] = pytest.StashKey()
_kept: pytest.StashKey[FrameReports] = pytest.StashKey()
_null_ns: pytest.StashKey[int] = pytest.StashKey()


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
        pytest.UsageError: the length of the null loop is no duration, or a baseline
            is to be updated that is not named or no baseline.
    """
    config.addinivalue_line("markers", _MARKER_LINE)
    try:
        null_ns = parse_ns(config.getini(INI_NULL), "ms")
    except VeoError as error:
        raise pytest.UsageError(f"{INI_NULL}: {error}") from None
    if null_ns > LONGEST_NULL_NS:
        raise pytest.UsageError(
            f"{INI_NULL}: at most {format_ns(LONGEST_NULL_NS)}, before every test"
        )
    config.stash[_null_ns] = null_ns
    _check_update(config)
    config.stash[_kept] = FrameReports()
    config.pluginmanager.register(config.stash[_kept], "veo-frame-reports")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Take further readers, before any file is read."""
    register_readers(session.config)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Read every marker before the first test runs.

    Raises:
        pytest.UsageError: a marker, or an ini line, makes no sense.
    """
    records = judges = False
    for item in items:
        marked = item.get_closest_marker(MARKER) is not None
        if marked:
            judges = True
            item.stash[_budgets], item.stash[_captures] = read_markers(config, item)
        records = records or marked or FIXTURE in getattr(item, "fixturenames", ())
    if not records or config.option.collectonly:
        return
    config.pluginmanager.register(JitterJudge(), "veo-jitter")
    # What the first test would have to open or load is nothing that it keeps.
    config.stash[_kept].spool.open()
    if config.pluginmanager.has_plugin(WATCH_PLUGIN):
        _load_all(config, items)
    elif judges:
        frames_ahead.load_judge()


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


@pytest.fixture
def veo_preview(veo_frames: Frames) -> PreviewStreams:
    """Receive preview streams, each a series: `veo_preview(url=..., request_id=...)`.

    In an asynchronous test: `series = await veo_preview.receive(url=..., ...)`. Each
    series is held to the test's `veo_jitter`; `veo_preview.counts` tells what was lost,
    late or broken.
    """
    from pytest_veo.readers.preview_streams import PreviewStreams

    return PreviewStreams(veo_frames.use)


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
        if item.config.pluginmanager.has_plugin(RERUN_PLUGIN):
            # The leak check runs the test again; its frames were judged before.
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
            item.config.stash[_kept].attach(report, judged.records)
            if judged.section:
                report.sections.append((SECTION, judged.section))
            del item.stash[_report]
        return report


# Last: an error ends the hook for all who come after.
@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Add this run to the baseline, when that was asked for."""
    config = session.config
    asked = _asked_to_update(config)
    if hasattr(config, "workerinput") or not asked:
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
        for report, record in config.stash[_kept].records(terminal)
        if report.passed and "series" in record
    }
    try:
        add_to_history(path, entries, RUNS_KEPT)
    except VeoError as error:
        pytest.exit(f"{asked}: {error}", returncode=pytest.ExitCode.USAGE_ERROR)


def _judge(
    item: pytest.Item,
    frames: Frames,
    budgets: Mapping[str | None, JitterBudget],
    machine: MachineNoise | None,
) -> None:
    from pytest_veo.frames.session import judge_test

    def history(series: str) -> History:
        return _history(item, series)

    def judge() -> FrameReport:
        variant = variant_of(item)
        return judge_test(
            frames, budgets, noise=machine, history=history, variant=variant
        )

    try:
        report = judge()
        if report.failed_outright and machine is not None and machine.frames:
            # What was quiet before may be loud by now: look again before accusing.
            machine = machine.worse(_null_loop(item.config))
            report = judge()
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
    try:
        add_captures(frames, captures)
    except (VeoError, OSError) as error:
        raise JitterExceeded(f"{MARKER}: {error}", pytrace=False) from None
    return frames


def _describe(item: pytest.Item) -> None:
    from pytest_veo.frames.session import describe_test

    frames = item.stash.get(_frames, None)
    if frames is None:
        return
    try:
        budgets = item.stash.get(_budgets, {})
        item.stash[_report] = describe_test(frames, budgets, variant_of(item))
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


def _load_all(config: pytest.Config, items: list[pytest.Item]) -> None:
    fixtures = {name for each in items for name in getattr(each, "fixturenames", ())}
    captures = [named.path for each in items for named in each.stash.get(_captures, ())]
    frames_ahead.load_all(captures, previews="veo_preview" in fixtures)
    budgets = [
        budget for each in items for budget in each.stash.get(_budgets, {}).values()
    ]
    if _baseline_path(config) is None and any(each.baseline for each in budgets):
        # That no runs are named, or cannot be read, is told by the tests.
        with contextlib.suppress(VeoError):
            _earlier_frames(config)


def _history(item: pytest.Item, series: str) -> History:
    """From the file of the ini key, else from the runs that --veo-baseline names."""
    path = _baseline_path(item.config)
    if path is not None:
        from pytest_veo.frames.baseline import read_history

        return read_history(path, f"{item.nodeid}::{series}")
    return _earlier_frames(item.config).get((item.nodeid, series), {})


def _earlier_frames(config: pytest.Config) -> Mapping[tuple[str, str], History]:
    if _earlier not in config.stash:
        from pytest_veo.archive import frame_history

        config.stash[_earlier] = frame_history.earlier(config, INI_BASELINE)
    return config.stash[_earlier]


def _asked_to_update(config: pytest.Config) -> str:
    """The option that asks to update the baseline; empty where none does."""
    options = (OPTION_UPDATE, OPTION_BOTH)
    return next((name for name in options if config.getoption(name, False)), "")


def _check_update(config: pytest.Config) -> None:
    asked, path = _asked_to_update(config), _baseline_path(config)
    if asked == OPTION_UPDATE and path is None:
        raise pytest.UsageError(
            f"{OPTION_UPDATE}: name the file: set {INI_BASELINE} in the ini file"
        )
    if not asked or path is None:
        return
    from pytest_veo.frames.baseline import read_history

    try:
        read_history(path, "")
    except VeoError as error:
        raise pytest.UsageError(f"{asked}: {error}") from None


def _baseline_path(config: pytest.Config) -> Path | None:
    text = config.getini(INI_BASELINE)
    return config.rootpath / text if text else None
