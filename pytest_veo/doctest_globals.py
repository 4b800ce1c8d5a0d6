"""Doctests lose their globals when they have run; a re-run needs them again."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from typing import Any

import pytest


if TYPE_CHECKING:
    from collections.abc import Iterator


_KEY = pytest.StashKey[dict[str, Any]]()


@contextlib.contextmanager
def kept(item: pytest.Item) -> Iterator[None]:
    """Keep a copy of a doctest's globals meanwhile."""
    item.stash[_KEY] = dict(_globals(item))
    try:
        yield
    finally:
        del item.stash[_KEY]


def restore(item: pytest.Item) -> None:
    """Give a doctest the globals again that it had before its first run."""
    known = item.stash.get(_KEY, None)
    if known is not None:
        _globals(item).clear()
        _globals(item).update(known)


def _globals(item: Any) -> dict[str, Any]:
    found: dict[str, Any] = item.dtest.globs
    return found
