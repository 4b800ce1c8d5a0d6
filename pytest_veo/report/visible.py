"""Text of unknown origin, so that people see what is there."""

from __future__ import annotations

import unicodedata


_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def visible(text: str, keep: str = "") -> str:
    """Characters that control, hide or turn text around as their code points.

    A test's id may hold a right-to-left override that makes it read as another's; a
    file's name may hold half a surrogate pair that no file can be written with.

    Args:
        text: anything.
        keep: control characters to leave in, such as a newline.
    """
    # Nearly all text is such; one test for all of it is a hundred times faster.
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char
        if char in keep or unicodedata.category(char) not in _HIDDEN
        else f"\\u{ord(char):04x}"
        for char in text
    )
