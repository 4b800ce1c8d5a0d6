from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.frames.plugin.conftest import Run


EXAMPLES = Path(__file__).parents[3] / "examples"


def printed(name: str) -> list[str]:
    """The lines of an example's output that are the same at every run."""
    lines = (EXAMPLES / name / "expected.txt").read_text(encoding="utf-8").splitlines()
    changing = ("=", "_", ".F", "FAILED ", "examples/", "1 failed")
    return [line for line in lines if line and not line.startswith(changing)]


def shape(line: str) -> str:
    """A line without what differs from run to run: figures, and the strip."""
    if line.lstrip().startswith("machine: "):
        return "machine"
    return re.sub(r"[-+]?\d[\d.]*(e[-+]\d+)?( [mun]?s\b)?|[\u2581-\u2588]+", "N", line)


@pytest.mark.parametrize(
    ("name", "needs", "passed"),
    [("frames_sweep", None, 5), ("frames_decoder", "av", 1)],
    ids=["sweep", "decoder"],
)
def test_the_example_prints_what_it_says(
    run: Run, name: str, needs: str | None, passed: int
) -> None:
    if needs is not None:
        pytest.importorskip(needs)
    (file,) = (EXAMPLES / name).glob("test_*.py")
    result = run(file.read_text(encoding="utf-8"))
    result.assert_outcomes(passed=passed, failed=1)
    output = result.stdout.str()
    assert printed(name)
    missing = [line for line in printed(name) if line not in output]
    assert not missing


def test_the_render_loop_tells_a_loop_that_misses_refreshes(run: Run) -> None:
    (file,) = (EXAMPLES / "frames_render_loop").glob("test_*.py")
    result = run(file.read_text(encoding="utf-8"), ini="veo_jitter_null = 50 ms")
    result.stdout.fnmatch_lines(["p50_ms 3* ms, limit 20 ms, in frames"])
    assert result.parseoutcomes().get("failed") == 1
    seen = [shape(line) for line in result.outlines]
    begin = seen.index(shape(printed("frames_render_loop")[0]))
    expected = [shape(line) for line in printed("frames_render_loop")]
    assert seen[begin : begin + len(expected)] == expected
