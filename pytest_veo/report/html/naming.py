"""What a test is called on the page, and the address that leads to it."""

from __future__ import annotations

import urllib.parse

from pytest_veo.report.visible import visible


def shorten(text: str, limit: int) -> str:
    """The beginning and the end of a text that is longer than `limit`."""
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]} … {text[-limit // 2 :]}"


def path_of(nodeid: str) -> str:
    """The test's file."""
    return nodeid.partition("::")[0] if "::" in nodeid else ""


def name_of(nodeid: str) -> str:
    """The node id without the file."""
    return nodeid.partition("::")[2] or nodeid


def hash_of(nodeid: str) -> str:
    """The part of an address that leads to a test, as the page's scripts make it."""
    has_half_pair = any("\ud800" <= char <= "\udfff" for char in nodeid)
    name = visible(nodeid) if has_half_pair else nodeid
    return f"#test={urllib.parse.quote(name, safe='')}"
