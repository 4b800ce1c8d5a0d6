"""Evidence as lines for a failure: allocated where, held by whom, a way out."""

from __future__ import annotations

from pytest_veo.evidence.allocations import Site
from pytest_veo.evidence.collect import Evidence
from pytest_veo.evidence.creations import Creation
from pytest_veo.evidence.device_blocks import DeviceSite
from pytest_veo.evidence.native import NativeSite
from pytest_veo.evidence.places import GrownPlace
from pytest_veo.units import format_bytes
from pytest_veo.units import format_count


_MOST_LINES = 12
_WIDTH = 100
_MOST_SITES = 2
_MOST_HOLDERS = 2
_CRUMB = 20
_NOBODY = (
    "no new Python object, and no container that grew: C or C++ code keeps it (memory "
    "it fetched itself, a handle's workspace, a communicator, a C++ reference cycle)"
)


def lines(evidence: Evidence, most: int = _MOST_LINES) -> tuple[str, ...]:
    """The evidence in at most `most` lines, each with its kind in front.

    The first two are enough to act on: one line that allocated, one chain that holds.
    """
    placed = [site for site in evidence.device_sites if site.where]
    placeless = [site for site in evidence.device_sites if not site.where]
    allocated = [
        *(_device_line(site) for site in placed[:_MOST_SITES]),
        *(_site_line(site) for site in _telling(evidence)[:_MOST_SITES]),
        *(_device_line(site) for site in placeless[:_MOST_SITES]),
    ]
    native = [line for s in evidence.native_sites[:1] for line in _native_lines(s)]
    found = [
        *_labelled("allocated", [*allocated[:1], *native]),
        *_labelled("held by", _holding(evidence)),
        *_labelled("also", allocated[1:3]),
        *_labelled("created", [_creation_line(c) for c in evidence.creations[:2]]),
        *_labelled("hint", list(evidence.hints)),
        *_labelled("note", list(evidence.notes)),
    ]
    return tuple(found[:most])


def _telling(evidence: Evidence) -> list[Site]:
    """Without the crumbs beside a line that allocates far more."""
    sizes = [
        *(site.bytes_per_run for site in evidence.sites),
        # One without a line explains nothing: the crumbs beside it do.
        *(site.bytes_per_run for site in evidence.device_sites if site.where),
    ]
    most = max(sizes, default=0)
    return [site for site in evidence.sites if site.bytes_per_run * _CRUMB >= most]


def _labelled(label: str, texts: list[str]) -> list[str]:
    return [
        f"{label if not i else '':<10} {_shortened(text)}"
        for i, text in enumerate(texts)
    ]


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDTH * 2 else f"{text[: _WIDTH * 2 - 3]}..."


def _amount(size_bytes: float, blocks: float) -> str:
    times = "" if round(blocks) <= 1 else f" in {format_count(round(blocks))} blocks"
    return f"{format_bytes(round(size_bytes))}{times} a run"


def _site_line(site: Site) -> str:
    via = f" (by {site.via})" if site.via else ""
    kind = f"{site.memory}, " if site.memory else ""
    amount = _amount(site.bytes_per_run, site.blocks_per_run)
    return f"{site}  {site.source}  [{kind}{amount}]{via}"


def _device_line(site: DeviceSite) -> str:
    pool = f", {site.pool}" if site.pool else ""
    amount = _amount(site.bytes_per_run, site.blocks_per_run)
    where = (
        f"{site.where}  {site.line}" if site.where else site.line or "no stack known"
    )
    return f"{where}  [{site.source} {site.device}{pool}, {amount}]"


def _native_lines(site: NativeSite) -> list[str]:
    amount = _amount(site.bytes_per_run, site.blocks_per_run)
    first = f"{site.where}  {site.source}  [native, {amount}]"
    chain = " < ".join(site.native)
    return [first, f"in C: {chain}"] if chain else [first]


def _holding(evidence: Evidence) -> list[str]:
    """The chains first, then containers that no chain goes through."""
    found = [
        line for holder in evidence.holders[:_MOST_HOLDERS] for line in holder.lines()
    ]
    places = [
        _place_line(place)
        for place in evidence.places
        if place.is_certain and not place.is_bookkeeping and place.owner != "pytest"
    ]
    if not found and not places and not evidence.creations:
        return [] if evidence.level == "native" else [_NOBODY]
    return [*_once(found), *places[:_MOST_HOLDERS]]


def _once(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _place_line(place: GrownPlace) -> str:
    of_type = f" of {place.entry_type}" if place.entry_type else ""
    per_run = format_count(place.entries_per_run, signed=True)
    unit = "entries" if place.entry_type else "bytes"
    bound = f", at most {place.bounded_by}" if place.bounded_by else ""
    if place.kind == "lru_cache":
        bound = ""
    size = f"{format_count(place.entries)} {unit}, {per_run} a run"
    return f"{place.path}  ({place.kind}{of_type}, {size}{bound})"


def _creation_line(creation: Creation) -> str:
    where = creation.where or "unknown place (C code, or before the evidence run)"
    per_run = format_count(creation.per_run, signed=True)
    what = f"{creation.kind} {creation.what}, {per_run} a run"
    return f"{where}  {creation.source}  [{what}]"
