"""What a command answers: to a person or a program, and of what it could not read."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

from pytest_veo.errors import CommandError
from pytest_veo.report.visible import visible
from pytest_veo.units import counted


_NAMED = 3
"""Those that are named; the rest are counted."""


def answer(
    args: argparse.Namespace,
    document: Callable[[], object],
    lines: Iterable[str],
    unread: Sequence[str] = (),
) -> None:
    """Print what was found, then end the command if some of it could not be read.

    Args:
        args: the command's; with `json` the document is printed.
        document: gives it, of plain values.
        lines: the same for people.
        unread: what could not be read.

    Raises:
        CommandError: naming what could not be read; the rest is printed.
    """
    if args.json:
        print(json.dumps(document(), indent=1))
    else:
        for line in lines:
            print(visible(line))
    complain(unread)


def complain(unread: Sequence[str]) -> None:
    """End the command, if there is anything to complain of.

    Raises:
        CommandError: counting what could not be read, and naming the first.
    """
    if not unread:
        return
    count = counted(len(unread), "thing")
    more = len(unread) - _NAMED
    named = "; ".join(unread[:_NAMED])
    raise CommandError(
        f"{count} could not be read: {named}{f'; and {more} more' * (more > 0)}"
    )
