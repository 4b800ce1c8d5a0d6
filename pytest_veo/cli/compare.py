"""`veo compare A B`: what grew, shrank, is new, is gone between runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING
from typing import Any

from pytest_veo.archive.baseline import parse_limits
from pytest_veo.archive.compare import Comparison
from pytest_veo.archive.compare import compare
from pytest_veo.archive.compare import side
from pytest_veo.archive.reference import parse
from pytest_veo.cli.answer import answer
from pytest_veo.cli.progress import track
from pytest_veo.units import counted


if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Sequence

    from pytest_veo.archive.baseline import Difference


_SHOWN = 20
GREW = 1
"""Exit status: something grew by more than its limit."""


def add_parser(subparsers: Any) -> None:
    """Add `compare` to the `veo` command.

    Args:
        subparsers: what `ArgumentParser.add_subparsers` returned.
    """
    parser = subparsers.add_parser(
        "compare",
        help="what grew, shrank, is new or gone between runs",
        description="Compares B with A. Each is a run's id or folder, last, "
        "branch:NAME, median:N or a baseline file; ARCHIVE#REF names another archive. "
        "Exit status 1 if something grew by more than its limit.",
    )
    parser.add_argument("before", metavar="A")
    parser.add_argument("after", metavar="B")
    parser.add_argument("--archive", metavar="ARCHIVE", help="where A and B are")
    parser.add_argument(
        "--limit",
        default="",
        metavar="LIST",
        help="as --veo-baseline-limit (default: 10%%+64 KiB)",
    )
    parser.add_argument(
        "--counter",
        action="append",
        default=[],
        metavar="PATTERN",
        help="only these, such as 'torch.*' (default: all but test.duration)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare and print.

    Returns:
        0, or 1 if something grew.

    Raises:
        ArchiveError: a run, file or archive that is not there or cannot be read.
        BadSetting: a reference or limit that means nothing.
        CommandError: some lines could not be read; the rest is printed.
    """
    limits = parse_limits(args.limit, "--limit")
    earlier = parse(args.before, args.archive, "A")
    after = side(parse(args.after, args.archive, "B"), track=track)
    # A run in the spread that it is held against would never be beyond it.
    but = after.name if after.runs == 1 and earlier.runs > 1 else ""
    before = side(earlier, but=but, track=track)
    found = compare(before, after, limits, args.counter)
    answer(args, lambda: document(found), lines(found), found.notes)
    return GREW if found.grew else 0


def document(found: Comparison) -> dict[str, Any]:
    """The comparison as plain values."""
    return {
        "before": found.before,
        "after": found.after,
        "grew": [_plain(each) for each in found.grew],
        "moved": [_plain(each) for each in found.moved],
        "shrank": [_plain(each) for each in found.shrank],
        "new": list(found.new),
        "gone": list(found.gone),
        "same": found.same,
        "foreign": list(found.foreign),
        "unread": list(found.notes),
    }


def _plain(each: Difference) -> dict[str, Any]:
    return {
        "nodeid": each.key.nodeid,
        "counter": each.key.counter,
        "device": each.key.device,
        "unit": each.past.unit,
        "before": each.past.usual,
        "after": each.now,
        "change": each.change,
        "allowed": each.allowed,
        "spread": each.past.spread,
        "runs": each.past.runs,
    }


def lines(found: Comparison) -> Iterator[str]:
    """The comparison for people."""
    yield f"{found.before} -> {found.after}"
    if found.foreign:
        yield f"not made in the same place: {'; '.join(found.foreign)}"
    yield from _figures("grew", found.grew)
    yield from _figures(
        "grew, or only moved here from tests that now keep less", found.moved
    )
    yield from _figures("shrank", found.shrank)
    yield from _tests("new", found.new)
    yield from _tests("gone", found.gone)
    yield f"the same within their limits: {found.same} figures"


def _figures(title: str, rows: Sequence[Difference]) -> Iterator[str]:
    if not rows:
        return
    yield f"{title}: {len(rows)}"
    yield from (f"  {row.key.nodeid}: {row.text()}" for row in rows[:_SHOWN])
    if len(rows) > _SHOWN:
        yield f"  and {len(rows) - _SHOWN} more"


def _tests(title: str, tests: Sequence[str]) -> Iterator[str]:
    if not tests:
        return
    yield f"{title}: {counted(len(tests), 'test')}"
    yield from (f"  {nodeid}" for nodeid in tests[:_SHOWN])
    if len(tests) > _SHOWN:
        yield f"  and {len(tests) - _SHOWN} more"
