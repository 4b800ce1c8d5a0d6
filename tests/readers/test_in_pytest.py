from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_veo.errors import BadSetting
from pytest_veo.errors import FramesError
from pytest_veo.readers import registry
from pytest_veo.readers.preview_streams import PreviewStreams


EXAMPLES = Path(__file__).parents[2] / "examples"
PLUGINS = ("-p", "pytest_veo.plugin", "-p", "pytest_veo.frames_plugin")


@pytest.fixture(autouse=True)
def _no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    yield
    assert registry._added == []


TICKS = """
    import numpy
    from pytest_veo.readers import Capture, CapturedSeries

    class Ticks:
        name = "ticks"

        def claims(self, source):
            return source.head[0] == "TICKS 1"

        def read(self, source):
            stamps = numpy.array([int(l) for l in source.lines() if l.isdigit()])
            series = CapturedSeries(
                t_ns=stamps, event="present", clock="tool", name="t", tool="ticks"
            )
            return Capture(file=source.name, format="ticks", series=(series,))

    def pytest_veo_readers(config):
        return {given}
"""


def test_a_hook_adds_a_format_in_one_file_for_one_session(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(TICKS.replace("{given}", "[Ticks()]"))
    pytester.path.joinpath("run.ticks").write_text(
        "TICKS 1\n" + "".join(f"{i * 16_000_000}\n" for i in range(400))
    )
    pytester.makepyfile(
        """
        import pytest
        from pytest_veo import read_frames

        @pytest.mark.veo_jitter(frames_from="run.ticks", max_ms=15)
        def test_marker():
            pass

        def test_function():
            assert len(read_frames("run.ticks")[0]) == 400
        """
    )
    result = pytester.runpytest_subprocess(*PLUGINS)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["max_ms 16 ms, limit 15 ms, in t"])


def test_what_is_no_reader_stops_the_session_with_one_line(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(TICKS.replace("{given}", "['ticks']"))
    result = pytester.runpytest_subprocess(*PLUGINS)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: pytest_veo_readers: 'ticks' is no reader: it needs `name`, "
            "`claims(source)` and `read(source)`"
        ]
    )


@pytest.mark.parametrize(
    "reader",
    [
        pytest.param(object(), id="no name"),
        pytest.param(type("Half", (), {"name": "half", "claims": print}), id="half"),
    ],
)
def test_what_is_no_reader_is_refused(reader: object) -> None:
    with pytest.raises(BadSetting, match=r"is no reader: it needs `name`"):
        registry.register_reader(reader)  # type: ignore[arg-type]


def python(folder: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=EXAMPLES / folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_example_of_a_format_of_one_s_own_runs() -> None:
    done = python("captures_own_format", "reader.py")
    assert done.stderr == ""
    assert re.fullmatch(r"\d+ presents, steps \[.*\] ms\n", done.stdout)


def test_the_command_reads_a_format_of_one_s_own() -> None:
    arguments = ("-m", "pytest_veo", "frames", "engine.log")
    known = python("captures_own_format", *arguments, "-p", "reader")
    assert known.stdout.startswith("engine.log: enginelog\n")
    assert known.returncode == 0
    unknown = python("captures_own_format", *arguments)
    assert "engine.log: no known capture format" in unknown.stderr
    wrong = python("captures_own_format", *arguments, "-p", "raeder")
    assert "-p raeder: No module named 'raeder'" in wrong.stderr
    other = python("captures_own_format", *arguments, "-p", "json")
    assert "-p json: it gives no reader by pytest_veo_readers" in other.stderr


def test_the_example_of_two_captures_prints_what_its_page_says() -> None:
    page = (EXAMPLES / "captures_compare" / "README.md").read_text(encoding="utf-8")
    arguments = ("frames", "before.csv", "--compare", "after.csv")
    done = python("captures_compare", "-m", "pytest_veo", *arguments)
    assert done.returncode == 0
    shown = [
        line.strip()
        for block in re.findall(r"```text\n(.*?)```", page, re.DOTALL)
        for line in block.splitlines()
        if line.strip() and line.strip() != "..."
    ]
    assert shown
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert [line for line in shown if line not in lines] == []


PREVIEW = """
    import asyncio
    import contextlib
    import sys
    import threading

    import pytest
    from websockets.asyncio.server import serve

    sys.argv = ["server.py"]
    import server

    class Background:
        def __enter__(self):
            self.loop = asyncio.new_event_loop()
            self.done = asyncio.Event()
            self.up = threading.Event()
            self.thread = threading.Thread(
                target=self.loop.run_until_complete, args=(self.run(),)
            )
            self.thread.start()
            assert self.up.wait(20)
            return f"ws://127.0.0.1:{self.port}"

        async def run(self):
            async with serve(server.preview, "127.0.0.1", 0) as running:
                self.port = next(iter(running.sockets)).getsockname()[1]
                self.up.set()
                await self.done.wait()

        def __exit__(self, *_):
            self.loop.call_soon_threadsafe(self.done.set)
            self.thread.join(20)
            self.loop.close()

    @pytest.mark.veo_jitter(series="preview", max_ms=300, min_frames=3)
    def test_rough(veo_preview):
        with Background() as url:
            series = veo_preview(
                url=url, request_id="rough", interval_ms=200, frames=8
            )
        assert len(series) == 8
        assert series.event == "receive"
        assert (veo_preview.counts.lost, veo_preview.counts.duplicates) == (1, 1)

    def test_two_in_a_loop(veo_preview):
        async def main(url):
            for frames in (2, 3):
                yield await veo_preview.receive(
                    url=url, request_id="steady", interval_ms=200, frames=frames
                )

        async def gather(url):
            return [series async for series in main(url)]

        with Background() as url:
            found = asyncio.run(gather(url))
        assert [(s.name, len(s)) for s in found] == [("preview", 2), ("preview 2", 3)]
        assert [p.series.name for p in veo_preview.previews] == ["preview", "preview 2"]
"""


def test_the_fixture_gives_a_series_that_the_marker_judges(
    pytester: pytest.Pytester,
) -> None:
    pytest.importorskip("websockets")
    pytester.makepyfile(PREVIEW)
    server = EXAMPLES / "captures_preview" / "server.py"
    pytester.path.joinpath("server.py").write_text(server.read_text(encoding="utf-8"))
    result = pytester.runpytest_subprocess(*PLUGINS)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["max_ms*limit 300 ms, in preview"])


def test_the_fixture_says_what_to_write_in_an_asynchronous_test() -> None:
    streams = PreviewStreams(print)

    async def wrong() -> None:
        streams(url="ws://localhost", request_id="a")

    with pytest.raises(FramesError, match=r"write `series = await veo_preview"):
        asyncio.run(wrong())


def test_the_fixture_has_no_counts_before_it_received() -> None:
    with pytest.raises(FramesError, match="no stream was received yet"):
        _ = PreviewStreams(print).counts


def test_the_example_server_and_client_meet() -> None:
    pytest.importorskip("websockets")
    folder = "captures_preview"
    with subprocess.Popen(
        [sys.executable, "server.py", "0", "20"],
        cwd=EXAMPLES / folder,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            port = server.stdout.readline().rpartition(":")[2].strip()
            done = python(folder, "client.py", "rough", port)
        finally:
            server.kill()
    assert done.stderr == ""
    assert done.stdout.startswith(
        "16 frames, ended: closed\nlost 2, twice 2, broken 2, connected again 0 times\n"
    )
