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
    """Keep a copy of the item's globals meanwhile, if it is a doctest."""
    dtest = getattr(item, "dtest", None)
    if dtest is None:
        yield
        return
    item.stash[_KEY] = dict(dtest.globs)
    try:
        yield
    finally:
        del item.stash[_KEY]


def restore(item: pytest.Item) -> None:
    """Give a doctest the globals again that it had before its first run."""
    known = item.stash.get(_KEY, None)
    if known is not None:
        dtest: Any = getattr(item, "dtest", None)
        dtest.globs.clear()
        dtest.globs.update(known)
