from __future__ import annotations

import json

import pytest

from tests.frames.plugin.conftest import Run
from tests.frames.plugin.test_reports import KEEP_REPORTS


GRID = """
@pytest.mark.veo_jitter(target_fps=60, p99_ms=20, max_drop_rate=0.1)
@pytest.mark.parametrize("render_latency_ms", [16, 8])
@pytest.mark.parametrize("frame_queue_depth", [2, 10])
def test_preview(veo_frames, frame_queue_depth, render_latency_ms):
    veo_frames.clock = lambda: 0
    bad = frame_queue_depth == 2 and render_latency_ms == 16
    now, order = 0, list(range(400))
    if bad:
        order[100], order[103] = 103, 100
    for n in range(400):
        frames = veo_frames.series("preview", clock=lambda: 0)
        frames.add(now, sequence=order[n])
        now += 30_000_000 if bad and n % 7 == 0 else 16_000_000 + n % 3 * 100_000
"""
TABLE = [
    "test_suite.py::test_preview",
    "frame_queue_depth  render_latency_ms  frames  dropped  p99 ms  order  verdict",
    "                2                 16     400    7.83%      30      3  fail",
    "                2                  8     400    0.00%    16.2      0  pass",
    "               10                 16     400    0.00%    16.2      0  pass",
    "               10                  8     400    0.00%    16.2      0  pass",
]
POLICY = "veo_jitter = on_inconclusive = pass"


@pytest.mark.parametrize(
    "options",
    [(), ("-p", "xdist.plugin", "-n", "2")],
    ids=["one-process", "xdist"],
)
def test_a_parametrized_test_is_one_table(run: Run, options: tuple[str, ...]) -> None:
    if options:
        pytest.importorskip("xdist")
    result = run(GRID, *options, ini=POLICY)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(TABLE, consecutive=True)


def test_each_cell_is_in_its_record(pytester: pytest.Pytester, run: Run) -> None:
    run(GRID, ini=POLICY, conftest=KEEP_REPORTS)
    kept = json.loads((pytester.path / "kept.json").read_text())
    (record,) = kept["test_suite.py::test_preview[2-16]"]
    cell = record["cell"]
    assert cell["test"] == "test_suite.py::test_preview"
    assert cell["parameters"] == [["frame_queue_depth", 2], ["render_latency_ms", 16]]
    assert cell["p99_ms"] == 30
    assert cell["order_error"] == 3
    assert cell["outcome"] == "fail"
    assert cell["drop_rate"] == pytest.approx(34 / 434)


def test_a_cell_that_failed_by_itself_has_no_verdict(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(p99_ms=20)
@pytest.mark.parametrize("codec", ["h264", "av1"])
def test_decode(veo_frames, codec):
    steady(veo_frames.series("decode", clock=lambda: 0))
    assert codec != "av1"
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "codec  frames  dropped  p99 ms  order  verdict",
            " h264     401        -    16.2      -  pass",
            "  av1     401        -    16.2      -  -",
        ],
        consecutive=True,
    )


def test_series_of_one_cell_have_rows_of_their_own(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(p99_ms=20)
@pytest.mark.parametrize("depth", [1, 2])
def test_pipe(veo_frames, depth):
    for name in ("decode", "encode"):
        steady(veo_frames.series(name, clock=lambda: 0))
"""
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "depth  series  frames  dropped  p99 ms  order  verdict",
            "    1  decode     401        -    16.2      -  pass",
            "    1  encode     401        -    16.2      -  pass",
            "    2  decode     401        -    16.2      -  pass",
            "    2  encode     401        -    16.2      -  pass",
        ],
        consecutive=True,
    )


@pytest.mark.parametrize(
    "decorators",
    [
        pytest.param("@pytest.mark.parametrize('depth', [1, 2])", id="no-budget"),
        pytest.param(
            "@pytest.mark.veo_jitter(p99_ms=20)\n"
            "@pytest.mark.parametrize('depth', [1])",
            id="one-cell",
        ),
    ],
)
def test_what_is_no_sweep_has_no_table(run: Run, decorators: str) -> None:
    result = run(
        f"""
{decorators}
def test_loop(veo_frames, depth):
    steady(veo_frames.series("loop", clock=lambda: 0))
"""
    )
    assert "verdict" not in result.stdout.str()
    assert result.ret == 0


def test_the_last_run_of_a_cell_counts(run: Run) -> None:
    pytest.importorskip("pytest_rerunfailures")
    result = run(
        """
runs = []

@pytest.mark.veo_jitter(max_ms=20)
@pytest.mark.parametrize("depth", [1, 2])
def test_loop(veo_frames, depth):
    runs.append(depth)
    slow = [3] if runs == [1] else ()
    steady(veo_frames.series("loop", clock=lambda: 0), slow=slow)
""",
        "-p",
        "pytest_rerunfailures",
        "--reruns=1",
    )
    assert result.parseoutcomes() == {"passed": 2, "rerun": 1}
    result.stdout.fnmatch_lines(
        [
            "    1     401        -    16.2      -  pass",
            "    2     401        -    16.2      -  pass",
        ],
        consecutive=True,
    )


def test_a_large_grid_shows_the_cells_that_do_not_pass(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(max_ms=20)
@pytest.mark.parametrize("seed", range(70))
def test_loop(veo_frames, seed):
    slow = [3] if seed == 33 else ()
    steady(veo_frames.series("loop", clock=lambda: 0), slow=slow, count=10)
""",
        "-q",
        ini="veo_jitter_null = 0 ms",
    )
    result.assert_outcomes(passed=69, failed=1)
    result.stdout.fnmatch_lines(
        [
            "seed  frames  dropped  p99 ms  order  verdict",
            "  33      11        -  * fail",
            "69 cells pass",
        ],
        consecutive=True,
    )
