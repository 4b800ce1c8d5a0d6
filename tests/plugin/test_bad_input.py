"""Whatever means nothing is refused before the first test, with exit status 4."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from typing import Protocol

import pytest


if TYPE_CHECKING:
    from tests.plugin.conftest import Check


class Configure(Protocol):
    """Configures a session with these arguments, and runs none."""

    def __call__(self, *args: str) -> pytest.Config: ...


@pytest.fixture
def configure(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Configure:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(*args: str) -> pytest.Config:
        return pytester.parseconfigure("-ppytest_veo.plugin", *args)

    return run


USAGE = pytest.ExitCode.USAGE_ERROR
PROBES = "host, nvml, torch, accelerator, cupy, numba, rmm, jax, onnxruntime, cuda"
MUST_NOT_RUN = """
    def test_must_not_run():
        open("ran", "w").close()
"""


def refused(result: pytest.RunResult, pytester: pytest.Pytester, line: str) -> None:
    assert result.ret == USAGE
    assert f"ERROR: {line}" in [text.strip() for text in result.stderr.lines]
    assert not (pytester.path / "ran").exists()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            "--veo-probes=hots",
            "--veo-probes: there is no probe 'hots', known are "
            f"{PROBES} (did you mean 'host'?)",
        ),
        (
            "--veo-require=host,vulkan",
            f"--veo-require: there is no probe 'vulkan', known are {PROBES}",
        ),
        (
            "--veo-tolerance=4 MB",
            "--veo-tolerance: '4 MB': write MiB (binary), e.g. '4 MiB'",
        ),
        (
            "--veo-tolerance=heap=4 KiB",
            "--veo-tolerance: 'heap' is no counter, write probe.name such as "
            "host.heap or torch.allocated",
        ),
        (
            "--veo-tolerance=torch.*=0 B,hots.heap=4 KiB",
            f"--veo-tolerance: there is no probe 'hots', known are {PROBES} "
            "(did you mean 'host'?)",
        ),
        (
            "--veo-tolerance=host.heap=lots",
            "--veo-tolerance: 'lots': write a size such as '64 KiB'",
        ),
        (
            "--veo-reruns=-1",
            "--veo-reruns: '-1' is no number of runs, write 0 or more",
        ),
        (
            "--veo-reruns=many",
            "--veo-reruns: 'many' is no number of runs, write 0 or more",
        ),
        (
            "--veo-retention-limit=64 Foo",
            "--veo-retention-limit: '64 Foo': unknown unit 'Foo', use one of "
            "B, KiB, MiB, GiB, TiB",
        ),
        (
            "--veo-confirm-share=10",
            "--veo-confirm-share: '10' is no share, write e.g. '10%'",
        ),
        (
            "--veo-confirm-share=nan%",
            "--veo-confirm-share: 'nan%' is no share, write e.g. '10%'",
        ),
        (
            "--veo-confirm-start=soon",
            "--veo-confirm-start: 'soon': write a duration such as '16.7 ms'",
        ),
        (
            "--veo-confirm-time=3 weeks",
            "--veo-confirm-time: '3 weeks': unknown unit 'weeks', use one of "
            "ns, us, ms, s, min, h",
        ),
        (
            "--veo-gc=frozen",
            "--veo-gc: 'frozen' is none of freeze, plain (did you mean 'freeze'?)",
        ),
    ],
    ids=lambda value: value if value.startswith("--") else "",
)
def test_an_option_that_means_nothing_is_refused(
    configure: Configure, option: str, message: str
) -> None:
    with pytest.raises(pytest.UsageError, match=f"^{re.escape(message)}$"):
        configure("--veo-leak-check", option)


def test_what_is_refused_ends_the_run_before_the_first_test(
    check: Check, pytester: pytest.Pytester
) -> None:
    refused(
        check(MUST_NOT_RUN, "--veo-reruns=many", inprocess=True),
        pytester,
        "--veo-reruns: 'many' is no number of runs, write 0 or more",
    )


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "veo_probes",
            "hots",
            f"veo_probes (ini file): there is no probe 'hots', known are {PROBES} "
            "(did you mean 'host'?)",
        ),
        (
            "veo_tolerance",
            "host.heap=4 kB",
            "veo_tolerance (ini file): '4 kB': write KiB (binary), e.g. '4 KiB'",
        ),
        (
            "veo_reruns",
            "2.5",
            "veo_reruns (ini file): '2.5' is no number of runs, write 0 or more",
        ),
        (
            "veo_confirm_share",
            "a tenth",
            "veo_confirm_share (ini file): 'a tenth' is no share, write e.g. '10%'",
        ),
        (
            "veo_gc",
            "off",
            "veo_gc (ini file): 'off' is none of freeze, plain",
        ),
    ],
)
def test_an_ini_key_that_means_nothing_is_refused(
    pytester: pytest.Pytester, configure: Configure, key: str, value: str, message: str
) -> None:
    pytester.makeini(f"[pytest]\nveo_leak_check = fast\n{key} = {value}\n")
    with pytest.raises(pytest.UsageError, match=f"^{re.escape(message)}$"):
        configure()


@pytest.mark.parametrize("level", ["sometimes", "FAST", "1"])
def test_a_level_that_does_not_exist_in_the_ini_file_is_refused(
    pytester: pytest.Pytester, configure: Configure, level: str
) -> None:
    pytester.makeini(f"[pytest]\nveo_leak_check = {level}\n")
    message = f"veo_leak_check (ini file): {level!r} is none of off, fast, deep"
    with pytest.raises(pytest.UsageError, match=f"^{re.escape(message)}"):
        configure()


def test_a_broken_bool_in_the_ini_file_names_its_key(
    pytester: pytest.Pytester, configure: Configure
) -> None:
    pytester.makeini("[pytest]\nveo_strict = perhaps\n")
    message = (
        "veo_strict (ini file): neither true nor false, invalid truth value 'perhaps'"
    )
    with pytest.raises(pytest.UsageError, match=f"^{re.escape(message)}$"):
        configure("--veo-leak-check")


def test_a_marker_on_a_class_or_module_is_checked_too(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check(
        """
        import pytest

        pytestmark = pytest.mark.veo_leak(level="of")

        class TestIt:
            def test_marked(self):
                open("ran", "w").close()
    """,
        inprocess=True,
    )
    refused(
        result,
        pytester,
        "test_it.py::TestIt::test_marked: veo_leak(level): 'of' is none of off, "
        "fast, deep (did you mean 'off'?)",
    )


def test_a_marker_s_counters_belong_to_probes_that_exist(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check(
        """
        import pytest

        def test_first():
            open("ran", "w").close()

        @pytest.mark.veo_leak(counters=["*.used", "torhc.allocated"])
        def test_marked():
            pass
        """,
        inprocess=True,
    )
    refused(
        result,
        pytester,
        f"test_it.py::test_marked: veo_leak: there is no probe 'torhc', known are "
        f"{PROBES} (did you mean 'torch'?)",
    )


def test_an_archive_that_cannot_be_written_is_refused_where_that_is_asked_for(
    check: Check, pytester: pytest.Pytester
) -> None:
    (pytester.path / "taken").write_text("a file")
    refused(
        check(MUST_NOT_RUN, "--veo-archive=taken", "--veo-strict", inprocess=True),
        pytester,
        f"cannot write the archive {str(pytester.path / 'taken')!r}: Not a directory",
    )


def test_a_level_that_does_not_exist_names_those_that_do(
    check: Check, pytester: pytest.Pytester
) -> None:
    refused(
        check(MUST_NOT_RUN, "--veo-leak-check=deepest", level="", inprocess=True),
        pytester,
        "--veo-leak-check: 'deepest' is none of off, fast, deep (did you mean 'deep'?)",
    )


def test_the_option_does_not_take_the_path_behind_it(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.mkdir("tests")
    (pytester.path / "tests" / "test_one.py").write_text("def test_one(): pass\n")
    (pytester.path / "test_other.py").write_text("def test_other(): pass\n")
    args = "--veo-leak-check", "tests/", "--collect-only", "-q"
    result = check(None, *args, level="", inprocess=True)
    result.stdout.fnmatch_lines(
        ["tests/test_one.py::test_one", "", "1 test collected*"]
    )


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ((), "fast"),
        (("--veo-leak-check",), "fast"),
        (("--veo-leak-check=deep",), "deep"),
        (("--veo-leak-check=deep", "--veo-leak-check=fast"), "fast"),
    ],
)
def test_the_command_line_goes_before_the_ini_file(
    check: Check, pytester: pytest.Pytester, given: tuple[str, ...], shown: str
) -> None:
    pytester.makeini("[pytest]\nveo_leak_check = fast\n")
    result = check("def test_it(): pass", "--co", *given, level="", inprocess=True)
    result.stdout.fnmatch_lines([f"veo: leak check {shown}, watching host"])


def test_off_on_the_command_line_switches_the_ini_file_off(
    check: Check, pytester: pytest.Pytester
) -> None:
    pytester.makeini("[pytest]\nveo_leak_check = deep\n")
    result = check("def test_it(): pass", level="off", inprocess=True)
    result.assert_outcomes(passed=1)
    assert "veo:" not in result.stdout.str()
    assert "= veo =" not in result.stdout.str()


def test_bad_input_of_workers_ends_the_run_as_it_does_without_them(
    check: Check, pytester: pytest.Pytester
) -> None:
    result = check(
        """
        import pytest

        @pytest.mark.veo_leak(level="deap")
        def test_marked():
            open("ran", "w").close()
        """,
        "-n2",
        plugins=["xdist.plugin"],
    )
    text = result.stdout.str() + result.stderr.str()
    assert result.ret == USAGE
    assert "test_it.py::test_marked: veo_leak(level): 'deap' is none of" in text
    assert not (pytester.path / "ran").exists()


def test_a_missing_source_is_not_missed_where_nothing_runs(check: Check) -> None:
    result = check(
        "def test_it(): pass", "--veo-require=host", "--collect-only", inprocess=True
    )
    assert result.ret == pytest.ExitCode.OK


def test_a_counter_that_its_probe_does_not_have_is_refused(check: Check) -> None:
    result = check("def test_it(): pass", "--veo-tolerance=host.hepa=4 KiB")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: *: probe 'host' has no counter 'hepa', it has *"]
    )
