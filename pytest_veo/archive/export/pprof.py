"""Allocations as a pprof profile: gzipped protobuf, for `go tool pprof` and its kin.

From a run: the lines that a leak's evidence names, with the test as their caller. From
a `tracemalloc` snapshot: every stack. The message is `perftools.profiles.Profile`
(https://github.com/google/pprof/blob/main/proto/profile.proto), described here as far
as it is used.
"""

from __future__ import annotations

import functools
import gzip
import re
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

from pytest_veo.errors import MissingDependency
from pytest_veo.units import parse_bytes


if TYPE_CHECKING:
    import tracemalloc
    from collections.abc import Iterable
    from collections.abc import Iterator

    from pytest_veo.archive.store import Run


_SITE = re.compile(
    r"(?:allocated)?\s*(?P<file>\S.*?):(?P<line>\d+)  (?P<source>.*)"
    r"\[(?:.*, )?(?P<size>[\d.]+ (?:B|[KMGT]iB))"
    r"(?: in (?P<blocks>[\d,]+) blocks)? a run\]"
)


class Place(NamedTuple):
    """A line, with the function or test it belongs to."""

    function: str
    file: str = ""
    line: int = 0


class Sample(NamedTuple):
    """Memory that one stack allocated."""

    stack: tuple[Place, ...]
    """Newest first."""
    blocks: int
    size_bytes: int
    labels: tuple[tuple[str, str], ...] = ()


def of_run(found: Run) -> bytes:
    """What leaks a run, by the lines that allocated it.

    Raises:
        MissingDependency: `protobuf` is not installed.
    """
    return encode(samples_of(found), "growth")


def samples_of(found: Run) -> Iterator[Sample]:
    """A sample for each line of evidence on an allocation."""
    for record in found.records:
        for text in record.verdict.evidence:
            site = _SITE.match(text)
            if site is None:
                continue
            line = Place(
                site["source"].strip() or site["file"], site["file"], int(site["line"])
            )
            yield Sample(
                stack=(line, Place(record.nodeid, record.nodeid.partition("::")[0])),
                blocks=int((site["blocks"] or "1").replace(",", "")),
                size_bytes=parse_bytes(site["size"]),
                labels=(("verdict", record.verdict.outcome.value),),
            )


def of_snapshot(snapshot: tracemalloc.Snapshot) -> bytes:
    """A `tracemalloc` snapshot, domain by domain.

    Raises:
        MissingDependency: `protobuf` is not installed.
    """
    return encode(
        (
            Sample(
                stack=tuple(
                    Place(
                        f"{frame.filename}:{frame.lineno}", frame.filename, frame.lineno
                    )
                    for frame in reversed(trace.traceback)
                ),
                blocks=1,
                size_bytes=trace.size,
                labels=(("domain", str(trace.domain)),),
            )
            for trace in snapshot.traces
        ),
        "inuse",
    )


def encode(samples: Iterable[Sample], kind: str) -> bytes:
    """The profile, gzipped; the same samples give the same bytes.

    Args:
        samples: those of one stack and labels are added up.
        kind: what the values are: `inuse` or `growth`.

    Raises:
        MissingDependency: `protobuf` is not installed.
    """
    profile = _profile_class()()
    writer = _Writer(profile)
    for name, unit in ((f"{kind}_objects", "count"), (f"{kind}_space", "bytes")):
        profile.sample_type.add(type=writer.text(name), unit=writer.text(unit))
    profile.default_sample_type = writer.text(f"{kind}_space")
    summed: dict[tuple[Any, Any], list[int]] = {}
    for sample in samples:
        total = summed.setdefault((sample.stack, sample.labels), [0, 0])
        total[0] += sample.blocks
        total[1] += sample.size_bytes
    for (stack, labels), values in sorted(summed.items()):
        row = profile.sample.add(
            location_id=[writer.location(place) for place in stack], value=values
        )
        for key, value in labels:
            row.label.add(key=writer.text(key), str=writer.text(value))
    return gzip.compress(profile.SerializeToString(deterministic=True), mtime=0)


class _Writer:
    """Numbers texts, functions and locations as they come."""

    def __init__(self, profile: Any) -> None:
        self._profile = profile
        self._texts = {"": 0}
        profile.string_table.append("")
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[Place, int] = {}

    def text(self, value: str) -> int:
        if value not in self._texts:
            self._texts[value] = len(self._texts)
            self._profile.string_table.append(value)
        return self._texts[value]

    def location(self, place: Place) -> int:
        if place not in self._locations:
            number = self._locations[place] = len(self._locations) + 1
            location = self._profile.location.add(id=number)
            location.line.add(function_id=self._function(place), line=place.line)
        return self._locations[place]

    def _function(self, place: Place) -> int:
        key = place.function, place.file
        if key not in self._functions:
            number = self._functions[key] = len(self._functions) + 1
            name = self.text(place.function)
            self._profile.function.add(
                id=number, name=name, system_name=name, filename=self.text(place.file)
            )
        return self._functions[key]


# Message -> field, number, type; `*` in front: repeated.
_MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "ValueType": (("type", 1, "int64"), ("unit", 2, "int64")),
    "Label": (("key", 1, "int64"), ("str", 2, "int64"), ("num", 3, "int64")),
    "Sample": (
        ("location_id", 1, "*uint64"),
        ("value", 2, "*int64"),
        ("label", 3, "*Label"),
    ),
    "Line": (("function_id", 1, "uint64"), ("line", 2, "int64")),
    "Location": (
        ("id", 1, "uint64"),
        ("mapping_id", 2, "uint64"),
        ("address", 3, "uint64"),
        ("line", 4, "*Line"),
    ),
    "Function": (
        ("id", 1, "uint64"),
        ("name", 2, "int64"),
        ("system_name", 3, "int64"),
        ("filename", 4, "int64"),
        ("start_line", 5, "int64"),
    ),
    "Profile": (
        ("sample_type", 1, "*ValueType"),
        ("sample", 2, "*Sample"),
        ("location", 4, "*Location"),
        ("function", 5, "*Function"),
        ("string_table", 6, "*string"),
        ("time_nanos", 9, "int64"),
        ("default_sample_type", 14, "int64"),
    ),
}
_PACKAGE = "perftools.profiles"


@functools.cache
def _profile_class() -> Any:
    try:
        from google.protobuf import descriptor_pb2
        from google.protobuf import descriptor_pool
        from google.protobuf import message_factory
    except ImportError:
        raise MissingDependency("protobuf", "export", "a pprof profile") from None
    file = descriptor_pb2.FileDescriptorProto(
        name="pytest_veo/profile.proto", package=_PACKAGE, syntax="proto3"
    )
    kind = descriptor_pb2.FieldDescriptorProto
    plain = {
        "int64": kind.TYPE_INT64,
        "uint64": kind.TYPE_UINT64,
        "string": kind.TYPE_STRING,
    }
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, declared in fields:
            base = declared.removeprefix("*")
            is_many = declared != base
            added = message.field.add(
                name=field,
                number=number,
                label=kind.LABEL_REPEATED if is_many else kind.LABEL_OPTIONAL,
                type=plain.get(base, kind.TYPE_MESSAGE),
            )
            if base not in plain:
                added.type_name = f".{_PACKAGE}.{base}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName(f"{_PACKAGE}.Profile")
    return message_factory.GetMessageClass(found)
