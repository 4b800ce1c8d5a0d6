"""The rows of a run whose lines are all as they should be, read by Arrow at once.

Anything out of the ordinary, be it a half-written line, a field more or less, a number
where a text should be, or frames, which have a form of their own, makes the whole run
be read line by line, where each of these is told or taken for what it is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from pytest_veo.archive.parquet import arrow_of
from pytest_veo.archive.parquet import run_columns
from pytest_veo.archive.parquet import schema_of
from pytest_veo.archive.record import READABLE
from pytest_veo.archive.record import RunHeader
from pytest_veo.archive.rows import Columns
from pytest_veo.archive.rows import key_of
from pytest_veo.archive.rows import run_row
from pytest_veo.archive.table import COLUMNS
from pytest_veo.archive.table import RUN
from pytest_veo.archive.table import Table
from pytest_veo.units import Unit
from pytest_veo.verdict import Outcome


_ROWS = b'"environment_rows":{'
_TEXT = rb'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+"'
_SOME_ROWS = re.compile(rb"%b%b:%b(?:,%b:%b)*+" % (_ROWS, *(_TEXT,) * 4))
_LATER = ("frames", "environment", "environment_rows")
"""Fields that the first schema does not have."""


@functools.cache
def _form() -> Any:
    """What a record is, with nothing in its free parts."""
    import pyarrow as pa

    text, count = pa.string(), pa.int64()
    finding = {
        **dict.fromkeys(("counter", "device", "unit"), text),
        **dict.fromkeys(("before", "after"), count),
        "per_run": pa.float64(),
        "deltas": pa.list_(count),
        "limit": count,
    }
    verdict = {
        "outcome": text,
        "findings": pa.list_(pa.struct(list(finding.items()))),
        "runs": count,
        "reason": text,
        "ruled_out": pa.list_(text),
        "spent_ns": count,
        "evidence": pa.list_(text),
    }
    counter = {
        **dict.fromkeys(("counter", "device", "unit"), text),
        **dict.fromkeys(("before", "after", "growth"), count),
    }
    record = {
        "schema": count,
        **dict.fromkeys(("nodeid", "worker", "started_at"), text),
        "duration_ns": count,
        "test_outcome": text,
        "verdict": pa.struct(list(verdict.items())),
        "counters": pa.list_(pa.struct(list(counter.items()))),
        "frames": pa.list_(pa.null()),
        "environment": text,
        "environment_rows": pa.struct([]),
    }
    return pa.schema(list(record.items()))


def tables_of(run_id: str, header: RunHeader, content: bytes) -> dict[Table, Any]:
    """The run's tables as Arrow has them; none if a line is not plain.

    Args:
        run_id: the name of its folder.
        header: its own.
        content: all of its lines.
    """
    import pyarrow as pa

    if not _is_plain(content):
        return {}
    try:
        records = _read(_without_rows(content))
        found = {} if records is None else _tables(records)
    except (pa.ArrowException, OverflowError):
        return {}
    if not found:
        return {}
    key = key_of(run_id, header)
    return {
        "runs": _run_table(run_id, header, found["records"]),
        **{
            table: pa.table(
                [*run_columns([(key, len(rows))]), *rows.columns],
                schema=schema_of(table),
            )
            for table, rows in found.items()
        },
    }


def _is_plain(content: bytes) -> bool:
    # Arrow takes bytes that are no text as they are, and many objects on one line.
    is_text = content.isascii() and b"\\ud" not in content.lower()
    lines = content.count(b"\n")
    is_whole = content.startswith(b"{") and content.endswith(b"}\n")
    return is_text and is_whole and content.count(b"}\n{") == lines - 1


def _without_rows(content: bytes) -> bytes:
    """Without what environments are, which any record may tell and no table has."""
    parts, start = [], 0
    while (place := content.find(_ROWS + b'"', start)) >= 0:
        rows = _SOME_ROWS.match(content, place)
        if rows is None:
            break
        parts.append(content[start : place + len(_ROWS)])
        start = rows.end()
    return b"".join([*parts, content[start:]]) if parts else content


def _run_table(run_id: str, header: RunHeader, records: Any) -> Any:
    counts = records["verdict"].value_counts().to_pylist()
    tally = {each["values"]: each["counts"] for each in counts}
    runs = Columns("runs")
    runs.add([run_row(run_id, header, tally)])
    return arrow_of("runs", runs)


def _read(content: bytes) -> Any:
    """A row for each line; None if one of them is no record."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.json as pj

    records = pj.read_json(
        pa.BufferReader(content),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(content) + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=_form(), unexpected_field_behavior="error"
        ),
    ).combine_chunks()
    # What came later may be missing, and must not be null.
    is_whole = len(records) == content.count(b"\n") and not any(
        records[name].null_count
        for name in records.column_names
        if name not in _LATER or f'"{name}"'.encode() in content
    )
    known = pa.array(READABLE, pa.int64())
    has_frames = any(len(part.flatten()) for part in records["frames"].chunks)
    if (
        not is_whole
        or has_frames
        or not pc.all(pc.is_in(records["schema"], known)).as_py()
    ):
        return None
    return records


def _tables(records: Any) -> dict[Table, Any]:
    import pyarrow as pa

    verdict = records["verdict"].chunk(0)
    counters = records["counters"].chunk(0)
    parts = {name: verdict.field(name) for name in verdict.type.names}
    rows = counters.flatten()
    measured = [rows.field(name) for name in rows.type.names]
    findings = parts["findings"].flatten()
    told = [findings.field(name) for name in findings.type.names if name != "limit"]
    needed = [*parts.values(), rows, *measured, findings, *told]
    if any(column.null_count for column in needed) or not (
        _is_known(parts["outcome"], Outcome) and _is_known(findings.field("unit"), Unit)
    ):
        return {}
    environment = records["environment"].chunk(0).fill_null("")
    schema = schema_of("records")
    texts = [records[name].chunk(0) for name in ("nodeid", "worker")]
    started = records["started_at"].chunk(0).cast(schema.field("test_started_at").type)
    others = [records[name].chunk(0) for name in ("duration_ns", "test_outcome")]
    judged = [parts["outcome"], parts["reason"], environment]
    names = [name for name in schema.names if name not in RUN]
    lists = counters.value_lengths().to_numpy(zero_copy_only=False)
    return {
        "records": pa.table([*texts, started, *others, *judged], names),
        "counters": _counters(texts[0], parts, measured, lists),
    }


def _is_known(column: Any, known: type[Outcome | Unit]) -> bool:
    values = {each.value for each in known}
    return values.issuperset(column.unique().to_pylist())


def _counters(
    nodeids: Any, parts: dict[str, Any], measured: Sequence[Any], counts: Any
) -> Any:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    places = pa.array(np.repeat(np.arange(len(counts)), counts))
    usual = pc.if_else(
        pc.equal(parts["outcome"], Outcome.NOT_JUDGED.value),
        Outcome.NOT_JUDGED.value,
        Outcome.CLEAN.value,
    )
    found = list(_found(parts, measured, np.cumsum(counts) - counts, counts))
    mask = np.zeros(len(places), bool)
    mask[[place for place, *_ in found]] = True
    per_runs, verdicts = (
        pc.replace_with_mask(column, mask, pa.array(values, column.type))
        for column, values in (
            (pa.nulls(len(places), pa.float64()), [each[1] for each in found]),
            (usual.take(places), [each[2] for each in found]),
        )
    )
    columns = [nodeids.take(places), *measured, per_runs, verdicts]
    return pa.table(columns, [n for n in COLUMNS["counters"] if n not in RUN])


def _found(
    parts: dict[str, Any], measured: Sequence[Any], starts: Any, counts: Any
) -> Iterator[tuple[int, float | None, str]]:
    """Places of the counters that are findings, their growth a run, and verdicts."""
    import numpy as np

    for record in map(int, np.flatnonzero(parts["findings"].value_lengths())):
        start, count = int(starts[record]), int(counts[record])
        names = [column.slice(start, count).to_pylist() for column in measured[:2]]
        found = {
            (row["counter"], row["device"]): row["per_run"]
            for row in parts["findings"][record].as_py()
        }
        is_confirmed = parts["runs"][record].as_py() != 0
        outcome = parts["outcome"][record].as_py()
        for place, key in enumerate(zip(*names, strict=True), start=start):
            if key in found:
                yield place, found[key] if is_confirmed else None, outcome
