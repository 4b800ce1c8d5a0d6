"""What a command says of things that it could not read."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_veo.errors import CommandError


_NAMED = 3
"""Those that are named; the rest are counted."""


def complain(unread: Sequence[str]) -> None:
    """End the command, if there is anything to complain of.

    Raises:
        CommandError: counting what could not be read, and naming the first.
    """
    if not unread:
        return
    count = f"{len(unread)} thing{'' if len(unread) == 1 else 's'}"
    more = len(unread) - _NAMED
    named = "; ".join(unread[:_NAMED])
    raise CommandError(
        f"{count} could not be read: {named}{f'; and {more} more' * (more > 0)}"
    )
