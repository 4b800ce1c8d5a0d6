"""Shards of one suite as one run.

Runs belong together if their commit, branch, CI job and number of shards agree. Of two
runs of one shard the later one counts; the other stays a run of its own. Shards that
ran in another place than the first, on another GPU say, stay apart: their figures would
be compared with those of the wrong one.
"""

from __future__ import annotations

import json
import re
from collections import Counter as Tally
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from pytest_veo.archive.environment_match import differences
from pytest_veo.archive.place import Place
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.reference import environment_of
from pytest_veo.archive.writer import line_of


_SHARD = re.compile(r"(\d+)/(\d+)")


class Found(NamedTuple):
    """A run, where it lies."""

    place: Place
    run_id: str
    header: RunHeader


class Suite(NamedTuple):
    """Runs that become one."""

    run_id: str
    shards: tuple[Found, ...]
    """In order of their numbers."""


def suites_of(found: Iterable[Found]) -> tuple[list[Suite], list[str]]:
    """The suites that these runs make up, and what was left apart, with its reason.

    Args:
        found: runs of any number of archives; each id counts once.
    """
    groups: dict[tuple[str, ...], dict[int, Found]] = {}
    apart: list[str] = []
    for run in sorted({each.run_id: each for each in found}.values(), key=_age):
        key = _suite_of(run.header)
        if key is None:
            continue
        group = groups.setdefault(key, {})
        number = _number(run.header)
        if number in group:
            older = group[number].run_id
            apart.append(f"{older}: shard {run.header.shard} ran again: {run.run_id}")
        group[number] = run
    suites = []
    for group in groups.values():
        shards = list(_alike([group[number] for number in sorted(group)], apart))
        if len(shards) > 1:
            suites.append(Suite(_joined_id(min(shards, key=_age)), tuple(shards)))
    return suites, apart


def _age(run: Found) -> tuple[str, str]:
    return run.header.started_at, run.run_id


def _suite_of(header: RunHeader) -> tuple[str, ...] | None:
    match = _SHARD.fullmatch(header.shard)
    if match is None or not (header.commit or header.ci_job):
        return None  # nothing tells which others it belongs to
    # GitLab's jobs have their shard in their name.
    job = header.ci_job.replace(f" {header.shard}", "")
    return header.commit, header.branch, header.ci, job, match[2]


def _number(header: RunHeader) -> int:
    return int(header.shard.partition("/")[0])


def _alike(shards: Sequence[Found], apart: list[str]) -> Iterator[Found]:
    first = environment_of(shards[0].header)
    for run in shards:
        foreign = differences(first, environment_of(run.header))
        if foreign:
            what = f"not made where shard {shards[0].header.shard} was"
            apart.append(f"{run.run_id}: {what}: {'; '.join(foreign)}")
        else:
            yield run


def _joined_id(first: Found) -> str:
    """The same for the same shards, whoever joins them: a second time adds nothing."""
    number, _, total = first.header.shard.partition("/")
    part = f"-{number}of{total}"
    if part in first.run_id:
        return first.run_id.replace(part, f"-{total}shards")
    return f"{first.run_id}-{total}shards"


def joined_header(suite: Suite) -> RunHeader:
    """The header of the run that they become."""
    headers = [each.header for each in suite.shards]
    first = min(headers, key=lambda header: header.started_at)
    has_ended = all(header.finished_at for header in headers)
    totals: Tally[str] = Tally()
    for header in headers:
        totals.update(dict(header.totals))
    return first._replace(
        run_id=suite.run_id,
        shard=_shown([_number(header) for header in headers], headers[0].shard),
        environment=headers[0].environment,
        ci_job=first.ci_job.replace(f" {first.shard}", ""),
        finished_at=max(h.finished_at for h in headers) if has_ended else "",
        totals=tuple(sorted(totals.items())),
        fixtures=tuple(each for h in headers for each in h.fixtures),
        watched=tuple(sorted({each for h in headers for each in h.watched})),
        not_watched=tuple(
            dict.fromkeys(each for h in headers for each in h.not_watched)
        ),
    )


def _shown(numbers: Sequence[int], shard: str) -> str:
    """`1-8/8`; `1-3,5/8` where the fourth is missing."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    texts = [f"{a}-{b}" if a < b else f"{a}" for a, b in spans]
    return f"{','.join(texts)}/{shard.partition('/')[2]}"


def joined_lines(suite: Suite, lines: Sequence[Sequence[bytes]]) -> Iterator[bytes]:
    """The lines of all shards, each with the shard as a part of its worker's name.

    Args:
        suite: the shards.
        lines: of each.
    """
    own = suite.shards[0].header.environment
    for run, found in zip(suite.shards, lines, strict=True):
        shard = run.header.shard
        rows = dict(run.header.environment) if run.header.environment != own else {}
        for line in found:
            data = _parsed(line)
            if data is None:
                yield line  # named by whoever reads it, as it was before
                continue
            data["worker"] = f"{shard} {data.get('worker', '')}".strip()
            if rows and not data.get("environment"):
                data["environment"] = f"shard {shard}"
                data["environment_rows"] = rows
            yield line_of(data).rstrip(b"\n")


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(line)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None
