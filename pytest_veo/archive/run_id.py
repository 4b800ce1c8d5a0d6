"""Names of runs: they begin with their time, and no two are the same."""

from __future__ import annotations

import datetime
import re
import secrets
from typing import Protocol


_OTHER = re.compile(r"[^A-Za-z0-9._]+")
_COMMIT_LETTERS = 10
_PART_LETTERS = 32


class Origin(Protocol):
    """What a run's name is made of, beside its time."""

    @property
    def commit(self) -> str:
        """The full hash."""

    @property
    def branch(self) -> str:
        """Any text."""

    @property
    def ci_job(self) -> str:
        """Any text."""

    @property
    def shard(self) -> str:
        """`2/8`."""


def make_run_id(now: datetime.datetime, origin: Origin) -> str:
    """`20261130T190000.123456Z-1a2b3c4d5e-main-unit_7-2of8-9f3a01c2`.

    What is not known is left out. The letters at the end tell runs apart that are
    alike in all else: the shards of one job, started at once.

    Args:
        now: with a time zone.
        origin: the run's.
    """
    utc = now.astimezone(datetime.UTC)
    parts = [
        f"{utc:%Y%m%dT%H%M%S}.{utc.microsecond:06}Z",
        _part(origin.commit)[:_COMMIT_LETTERS],
        _part(origin.branch),
        _part(origin.ci_job),
        _part(origin.shard.replace("/", "of")),
        secrets.token_hex(4),
    ]
    return "-".join(part for part in parts if part)


def _part(text: str) -> str:
    # A dash separates parts, and a path is no part.
    return _OTHER.sub("_", text).strip("._")[:_PART_LETTERS]
