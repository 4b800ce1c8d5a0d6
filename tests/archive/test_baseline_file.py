"""The baseline in a file: small, sorted, and down only."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_veo.archive.baseline import Key
from pytest_veo.archive.baseline import Limit
from pytest_veo.archive.baseline import Past
from pytest_veo.archive.baseline import compare
from pytest_veo.archive.baseline_file import Baseline
from pytest_veo.archive.baseline_file import Update
from pytest_veo.archive.baseline_file import ratchet
from pytest_veo.archive.baseline_file import read
from pytest_veo.archive.baseline_file import text
from pytest_veo.archive.baseline_file import write
from pytest_veo.errors import ArchiveError


MIB = 1 << 20
A = Key("test_a.py::test_one", "host.heap", "host")
B = Key("test_a.py::test_two[a on b]", "torch.allocated", "gpu")
EMPTY = Baseline("base.json", (("gpu", "H200"),), {})


def run(**sizes: float) -> dict[Key, Past]:
    keys = {"a": A, "b": B}
    return {keys[name]: Past.of([size], "bytes") for name, size in sizes.items()}


def updated(old: Baseline, now: dict[Key, Past], *, accept: bool = False) -> Update:
    found = [
        compare(key, known, past.usual, Limit())
        for key, past in now.items()
        if (known := old.past(key)) is not None
    ]
    return ratchet(old, now, found, (), accept=accept)


def test_a_file_is_sorted_and_one_figure_a_line() -> None:
    figures = run(b=3 * MIB, a=2 * MIB)
    assert text(EMPTY._replace(figures=figures, tests=frozenset({"test_0.py::t"}))) == (
        '{\n "schema": 1,\n "environment": {\n  "gpu": "H200"\n },\n'
        ' "counters": {\n  "host.heap": "bytes",\n'
        '  "torch.allocated on gpu": "bytes"\n },\n "tests": {\n'
        '  "test_0.py::t": {},\n'
        '  "test_a.py::test_one": {\n'
        '   "host.heap": '
        '{"usual": 2097152, "spread": 0, "most": 2097152, "runs": 1}\n  },\n'
        '  "test_a.py::test_two[a on b]": {\n'
        '   "torch.allocated on gpu": '
        '{"usual": 3145728, "spread": 0, "most": 3145728, "runs": 1}\n  }\n }\n}\n'
    )


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    first = updated(EMPTY, run(a=2 * MIB, b=0)).baseline
    path = tmp_path / "deep" / "base.json"
    write(path, first)
    again = read(path)
    assert again.figures == first.figures
    assert again.tests == first.tests
    assert again.environment == EMPTY.environment
    assert text(again) == path.read_text()
    assert again.past(B) == Past(0.0, 0.0, 0.0, 1, "bytes")


def test_what_was_never_read_is_not_taken_for_nothing() -> None:
    old = updated(EMPTY, run(a=2 * MIB)).baseline
    assert old.past(A._replace(counter="torch.allocated", device="gpu")) is None
    assert old.past(A._replace(nodeid="test_a.py::test_new")) is None


def test_better_figures_lower_the_baseline_and_noise_does_not() -> None:
    old = updated(EMPTY, run(a=8 * MIB)).baseline
    assert updated(old, run(a=7.9 * MIB)).baseline == old
    lower = updated(old, run(a=4 * MIB))
    assert lower.lower == 1
    assert lower.baseline.figures[A].usual == 4 * MIB
    assert lower.baseline.figures[A].most == 4 * MIB


def test_worse_figures_raise_it_only_when_accepted() -> None:
    old = updated(EMPTY, run(a=8 * MIB)).baseline
    refused = updated(old, run(a=16 * MIB))
    assert refused.baseline == old
    assert refused.kept == 1
    accepted = updated(old, run(a=16 * MIB), accept=True)
    assert accepted.baseline.figures[A].usual == 16 * MIB
    assert accepted.raised == 1


def test_creeping_up_within_the_limit_never_raises_it() -> None:
    old = baseline = updated(EMPTY, run(a=8 * MIB)).baseline
    for size in (8.2, 8.4, 8.6, 8.75):
        baseline = updated(baseline, run(a=size * MIB)).baseline
    assert baseline == old


def test_a_figure_that_is_gone_takes_its_line_with_it() -> None:
    old = updated(EMPTY, run(a=8 * MIB)).baseline
    lower = updated(old, run(a=0))
    assert lower.baseline.figures == {}
    assert A.nodeid in lower.baseline.tests


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is no baseline: Expecting property name"),
        ("[]", "is no baseline: TypeError"),
        ('{"schema": 9}', "is a baseline of schema 9, this reads 1"),
        ('{"schema": 1}', "is no baseline: KeyError 'counters'"),
        (
            '{"schema": 1, "environment": {}, "counters": {"host.heap": "bytes"}, '
            '"tests": {"t": {"host.heap": {"usual": 1, "spread": -1, "most": 1, '
            '"runs": 1}}}}',
            "is no baseline: ValueError no figure",
        ),
    ],
    ids=["half", "list", "schema", "empty", "negative spread"],
)
def test_a_file_that_is_no_baseline_is_refused(
    content: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "base.json"
    path.write_text(content)
    with pytest.raises(ArchiveError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{str(path)!r} {said}")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    with pytest.raises(ArchiveError) as caught:
        read(path)
    assert str(caught.value) == (
        f"cannot read the baseline {str(path)!r}: No such file or directory"
    )


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "base.json"
    with pytest.raises(ArchiveError, match="cannot write the baseline"):
        write(path, EMPTY)
