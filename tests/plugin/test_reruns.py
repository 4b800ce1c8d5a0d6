"""Re-runs make function fixtures afresh and leave everything else as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugin.test_companions import HAS_SUBTESTS


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


QUICK = ("--veo-reruns=5", "--veo-evidence=off")


def noted(pytester: pytest.Pytester) -> list[str]:
    return (pytester.path / "notes").read_text().split()


NOTES = """
    import pytest

    kept = []

    def note(text):
        with open("notes", "a") as notes:
            notes.write(text + "\\n")

    def fixture(scope, *asked):
        @pytest.fixture(scope=scope, name=scope if scope != "function" else "narrow")
        def made(request):
            note(scope + "+")
            yield
            note(scope + "-")
        return made

    session = fixture("session")
    package = fixture("package")
    module = fixture("module")
    class_ = fixture("class")
"""


def test_wider_fixtures_are_set_up_and_torn_down_once_and_in_order(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check(
        NOTES
        + """
    @pytest.mark.usefixtures("session", "package", "module", "class")
    class TestFirst:
        def test_leaks(self):
            kept.append(bytearray(100_000))

        def test_last_of_its_class_leaks(self):
            kept.append(bytearray(100_000))

    @pytest.mark.usefixtures("module", "class")
    class TestSecond:
        def test_last_of_all_leaks(self):
            kept.append(bytearray(100_000))
    """,
        *QUICK,
    )
    result.assert_outcomes(failed=3)
    assert noted(pytester) == [
        "session+",
        "package+",
        "module+",
        "class+",
        "class-",
        "class+",
        "class-",
        "module-",
        "package-",
        "session-",
    ]


def test_function_fixtures_are_fresh_in_each_run(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check(
        """
        import pytest

        kept = []
        ups = []

        @pytest.fixture
        def narrow():
            ups.append("up")
            yield []
            ups.append("down")

        @pytest.fixture
        def asked_late():
            return []

        def test_leaks(narrow, request, tmp_path, capsys, monkeypatch):
            asked = request.getfixturevalue("asked_late")
            assert narrow == [] and asked == []
            narrow.append(1)
            asked.append(1)
            assert list(tmp_path.iterdir()) == []
            (tmp_path / "made").touch()
            print("once")
            assert capsys.readouterr().out == "once\\n"
            monkeypatch.setenv("VEO_TEST", "set")
            monkeypatch.syspath_prepend(tmp_path)
            request.addfinalizer(lambda: ups.append("finalized"))
            kept.append(bytearray(100_000))

        def test_after():
            assert ups == ["up", "finalized", "down"] * (len(ups) // 3)
            assert len(ups) // 3 == len(kept) > 5
        """,
        *QUICK,
    )
    result.assert_outcomes(failed=1, passed=1)


def test_an_error_in_a_wider_teardown_is_reported_for_the_last_test(
    check: Check,
) -> None:
    result = check(
        """
        import pytest

        kept = []

        @pytest.fixture(scope="module")
        def wide():
            yield
            raise RuntimeError("cannot tear down")

        def test_clean(wide):
            pass

        def test_leaks(wide):
            kept.append(bytearray(100_000))
        """,
        *QUICK,
    )
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*_ ERROR at teardown of test_leaks _*",
            "E       RuntimeError: cannot tear down",
            "leaked 97.7 KiB a run (host.heap)",
        ]
    )


def test_stopping_at_a_leak_tears_all_down_within_the_test(check: Check) -> None:
    result = check(
        """
        import pytest

        kept = []

        @pytest.fixture(scope="module")
        def wide():
            yield
            raise RuntimeError("cannot tear down")

        def test_leaks(wide):
            kept.append(bytearray(100_000))

        def test_is_not_run(wide):
            pass
        """,
        *QUICK,
        "-x",
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(failed=1, errors=1)
    result.stdout.fnmatch_lines(["*_ ERROR at teardown of test_leaks _*"])


@pytest.mark.parametrize(
    "how", ["raise KeyboardInterrupt", "pytest.exit('enough')"], ids=["ctrl-c", "exit"]
)
def test_an_interrupt_tears_wider_fixtures_down(
    check: Check, pytester: pytest.Pytester, how: str
) -> None:
    result = check(
        NOTES
        + f"""
    def test_leaks_and_stops(session, module):
        kept.append(bytearray(100_000))
        {how}
    """
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert noted(pytester) == ["session+", "module+", "module-", "session-"]


def test_a_test_that_stops_the_session_tears_wider_fixtures_down_once(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check(
        NOTES
        + """
    def test_leaks_and_stops(session, module, request):
        kept.append(bytearray(100_000))
        request.session.shouldstop = "enough"

    def test_is_not_run(module):
        pass
    """,
        *QUICK,
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["leaks: 1"])
    assert noted(pytester) == ["session+", "module+", "module-", "session-"]


def test_an_interrupt_of_a_re_run_tears_wider_fixtures_down(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check(
        NOTES
        + """
    def test_leaks(session, module):
        kept.append(bytearray(100_000))
        if len(kept) == 3:
            raise KeyboardInterrupt
    """,
        *QUICK,
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert noted(pytester) == ["session+", "module+", "module-", "session-"]


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ("assert False", "call failed: assert False"),
        ("pytest.skip('only once')", "call skipped: Skipped: only once"),
        ("pytest.xfail('only once')", "call skipped: *only once"),
        ("1 / 0", "call failed: ZeroDivisionError: division by zero"),
    ],
    ids=["fails", "skips", "xfails", "raises"],
)
def test_a_test_that_passes_only_once_passes(
    check: Check, second: str, why: str
) -> None:
    result = check(
        f"""
        import pytest

        kept = []

        def test_leaks():
            kept.append(bytearray(100_000))
            if len(kept) > 1:
                {second}

        def test_after():
            pass
        """,
        *QUICK,
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "suspected, not confirmed: *",
            "  test_it.py::test_leaks: kept 9?.* KiB (host.heap), confirming stopped "
            f"after 1 run: a re-run did not pass ({why})",
        ]
    )


@HAS_SUBTESTS
def test_a_subtest_that_fails_only_in_a_re_run_fails_nobody(check: Check) -> None:
    result = check(
        """
        kept = []

        def test_leaks(subtests):
            kept.append(bytearray(100_000))
            with subtests.test():
                assert len(kept) == 1
        """,
        *QUICK,
    )
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["  test_it.py::test_leaks: * a re-run did not pass (a subtest failed)"]
    )


def test_no_debugger_opens_in_a_re_run(check: Check) -> None:
    result = check(
        """
        kept = []

        def test_leaks():
            kept.append(bytearray(100_000))
            assert len(kept) == 1
        """,
        *QUICK,
        "--pdb",
    )
    assert result.ret == pytest.ExitCode.OK
    assert "PDB" not in result.stdout.str()


def test_temporary_folders_of_re_runs_are_gone(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check(
        """
        kept = []

        def test_leaks(tmp_path):
            (tmp_path / "large").write_bytes(bytes(10_000))
            kept.append(bytearray(100_000))
        """,
        *QUICK,
        "--basetemp=made",
    )
    result.assert_outcomes(failed=1)
    made = pytester.path / "made"
    folders = [path for path in made.iterdir() if not path.is_symlink()]
    assert [path.name for path in folders] == ["test_leaks0"]
    assert (folders[0] / "large").exists()


def test_warnings_of_re_runs_are_not_counted(check: Check) -> None:
    result = check(
        """
        import warnings

        kept = []

        def test_leaks():
            warnings.warn(f"number {len(kept)}")
            kept.append(bytearray(100_000))
        """,
        *QUICK,
    )
    result.assert_outcomes(failed=1, warnings=1)
    assert "number 0" in result.stdout.str()
    assert "number 1" not in result.stdout.str()


def test_plugins_hear_of_each_test_s_phases_once(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest("""
        heard = []

        def pytest_runtest_logreport(report):
            heard.append(report.when)

        def pytest_unconfigure():
            print("HEARD", *heard)
    """)
    result = check(
        """
        kept = []

        def test_leaks():
            kept.append(bytearray(100_000))
        """,
        *QUICK,
        "-s",
    )
    result.stdout.fnmatch_lines(["HEARD setup call teardown"])


def test_an_interrupt_while_allocations_are_traced_leaves_nothing_behind(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(
        """
        import os
        import tracemalloc

        OPEN = os.open

        def pytest_unconfigure():
            print("left:", tracemalloc.is_tracing(), os.open is not OPEN)
        """
    )
    result = check(
        """
        import tracemalloc

        kept = []

        def test_leaks():
            kept.append(bytearray(100_000))
            if tracemalloc.is_tracing():
                raise KeyboardInterrupt
        """,
        "--veo-reruns=5",
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["left: False False"])
