from __future__ import annotations

import unicodedata

import hypothesis
import hypothesis.strategies as st
import pytest

from pytest_veo.report.visible import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tests/test_a.py::test_it[1]", "tests/test_a.py::test_it[1]"),
        ("größe 日本 🎮", "größe 日本 🎮"),
        ("\u202etset", "\\u202etset"),
        ("a\u200bb", "a\\u200bb"),
        ("\ud800", "\\ud800"),
        ("\x1b[31mred", "\\u001b[31mred"),
        ("two\nlines", "two\\u000alines"),
        ("\u2028", "\\u2028"),
    ],
    ids=ascii,
)
def test_what_hides_or_turns_is_shown_by_its_number(text: str, shown: str) -> None:
    assert visible(text) == shown


@hypothesis.given(st.text(alphabet=st.characters()))
def test_nothing_hidden_is_left_but_what_is_kept(text: str) -> None:
    found = visible(text, keep="\n")
    assert all(
        char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
        for char in found
    )
    found.encode()
