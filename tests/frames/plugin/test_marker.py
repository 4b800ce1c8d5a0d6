from __future__ import annotations

import pytest

from tests.frames.plugin.conftest import Run


def test_frames_within_their_budget_pass(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(p50_ms=17, p99_ms=18, max_ms=20)
def test_loop(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0))
"""
    )
    result.assert_outcomes(passed=1)


def test_frames_over_their_budget_fail_in_the_call_phase(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(p99_ms=20, target_fps=60)
def test_loop(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0), slow=range(0, 400, 7))
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "p99_ms 30 ms, limit 20 ms, in loop",
            "  p99_ms  30 ms  <= 20 ms  fail",
            "  401 frames in 7.25 s: frame stamps, clock injected, step 100 us",
            "  worst frames: #*",
            "  drops: missed slots * of *",
            "FAILED *::test_loop - JitterExceeded: p99_ms 30 ms, limit 20 ms, in loop",
        ]
    )
    assert "Traceback" not in result.stdout.str()


def test_a_test_without_a_marker_is_not_judged(run: Run) -> None:
    result = run(
        """
def test_loop(veo_frames):
    steady(veo_frames, slow=range(0, 400, 7))
"""
    )
    result.assert_outcomes(passed=1)


def test_a_test_that_failed_by_itself_is_not_judged(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(p99_ms=20)
def test_loop(veo_frames):
    steady(veo_frames, slow=range(0, 400, 7))
    assert 1 == 2
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *assert 1 == 2"])
    result.stdout.no_fnmatch_line("*limit 20 ms*")


@pytest.mark.parametrize("strict", [True, False])
def test_an_expected_failure_is_an_xfail(run: Run, strict: bool) -> None:
    result = run(
        f"""
@pytest.mark.xfail(strict={strict})
@pytest.mark.veo_jitter(p99_ms=20)
def test_loop(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0), slow=range(0, 400, 7))
"""
    )
    result.assert_outcomes(xfailed=1)


def test_a_skipped_test_is_skipped(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(p99_ms=20)
def test_loop(veo_frames):
    pytest.skip("no display")
"""
    )
    result.assert_outcomes(skipped=1)


@pytest.mark.parametrize(
    "arguments",
    ["veo_frames", ""],
    ids=["fixture-unused", "no-fixture"],
)
def test_a_budget_without_a_frame_fails(run: Run, arguments: str) -> None:
    result = run(
        f"""
@pytest.mark.veo_jitter(p99_ms=20)
def test_loop({arguments}):
    pass
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["veo_jitter: no frame was recorded, so nothing is*"])


@pytest.mark.parametrize(
    ("policy", "outcomes"),
    [
        ("warn", {"passed": 1}),
        ("pass", {"passed": 1}),
        ("fail", {"failed": 1}),
    ],
)
def test_what_an_inconclusive_test_does_is_its_budgets_choice(
    run: Run, policy: str, outcomes: dict[str, int]
) -> None:
    result = run(
        f"""
@pytest.mark.veo_jitter(p99_ms=20, on_inconclusive="{policy}")
def test_loop(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0), count=100)
"""
    )
    result.assert_outcomes(**outcomes)
    told = "*not enough frames: p99_ms 16.2 ms, limit 20 ms, in loop*"
    if policy == "pass":
        result.stdout.no_fnmatch_line(told)
    else:
        result.stdout.fnmatch_lines([told, "*needs 300 frames*"])
    if policy == "warn":
        result.stdout.fnmatch_lines(["*= veo frames =*", "test_suite.py::test_loop"])


def test_each_series_has_its_own_budget(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(p50_ms=20)
@pytest.mark.veo_jitter(series="decode", p50_ms=40, event="decode")
def test_both(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0))
    decode = veo_frames.series("decode", event="decode", clock=lambda: 0)
    record(decode, [33.0, 33.5] * 200)

@pytest.mark.veo_jitter(p50_ms=20)
def test_one_for_all(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0))
    record(veo_frames.series("decode", clock=lambda: 0), [33.0, 33.5] * 200)
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["p50_ms 33.25 ms, limit 20 ms, in decode"])


def test_a_class_marker_gives_defaults(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(max_ms=20, warmup=10)
class TestLoop:
    @pytest.mark.veo_jitter(p50_ms=17)
    def test_warm(self, veo_frames):
        steady(veo_frames.series("loop", clock=lambda: 0), slow=range(10))

    @pytest.mark.veo_jitter(warmup=5)
    def test_cold(self, veo_frames):
        steady(veo_frames.series("loop", clock=lambda: 0), slow=range(10))
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["FAILED *::test_cold - *max_ms 30 ms, limit 20 ms*"])


def test_the_marker_names_the_event_of_the_default_series(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(max_ms=1000, event="present")
def test_loop(veo_frames):
    veo_frames.tick()
    veo_frames.tick()

@pytest.mark.veo_jitter(max_ms=1000, event="display")
def test_other(veo_frames):
    steady(veo_frames.series("loop", event="present", clock=lambda: 0))
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["veo_jitter: recorder: the budget is for display, the frames have present"]
    )


def test_a_limit_finer_than_the_clock_fails_with_its_reason(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(p50_ms=20)
def test_loop(veo_frames):
    record(veo_frames.series("loop", clock=lambda: 0), [15.6, 15.6, 31.2] * 50)
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "veo_jitter: p50_ms=20 is finer than two steps of the clock (15.6 ms "
            "each): these stamps cannot tell. *"
        ]
    )


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        pytest.param(
            "p98_ms=20",
            "unknown argument 'p98_ms': use one of target_fps, p50_ms, *",
            id="unknown",
        ),
        pytest.param("20", "20: name every argument", id="position"),
        pytest.param("p99_ms='20'", "p99_ms='20': it must be a number", id="text"),
        pytest.param(
            "max_over=20, p50_ms=1",
            "max_over=20: it must be 2 numbers in brackets",
            id="pair",
        ),
        pytest.param(
            "p99_ms=20, event='flip'",
            "event: unknown event 'flip': use one of frame, vsync, *",
            id="event",
        ),
        pytest.param(
            "p99_ms=20, on_inconclusive='skip'",
            "on_inconclusive='skip': use warn, fail or pass",
            id="policy",
        ),
        pytest.param(
            "p95_ms=20, p99_ms=18",
            "p95_ms=20 and p99_ms=18 contradict each other: p99_ms is never below *",
            id="contradiction",
        ),
        pytest.param("", "no limit is given: set one of p50_ms, *", id="empty"),
        pytest.param(
            "p99_ms=20, series=3", "series=3: it must be a series' name", id="name"
        ),
    ],
)
def test_a_marker_that_makes_no_sense_stops_the_session(
    run: Run, marker: str, message: str
) -> None:
    result = run(
        f"""
@pytest.mark.veo_jitter({marker})
def test_loop(veo_frames):
    pass
"""
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: test_suite.py::test_loop: veo_jitter: {message}"]
    )


def test_a_budget_for_a_series_that_was_not_recorded_fails(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(series="decode", max_ms=20)
def test_loop(veo_frames):
    steady(veo_frames.series("loop", clock=lambda: 0))
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "veo_jitter: series='decode': no series of that name was recorded, so "
            "nothing is known of its pace; there are: 'loop'"
        ]
    )


def test_a_budget_for_runs_that_are_only_compared_fails(run: Run) -> None:
    result = run(
        """
@pytest.mark.veo_jitter(max_ms=20)
def test_loop(veo_frames):
    turns = veo_frames.turns("a", "b", pairs=5)
    for _, frames in turns:
        record(frames, [16.0, 16.1] * 50)
    turns.check("p50_ms")
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["veo_jitter: the runs of turns() are compared with each other and not held *"]
    )
