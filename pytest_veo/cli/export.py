"""`veo export`: archived runs in the formats of other tools."""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from pytest_veo.archive.place import replace_file
from pytest_veo.archive.query import Engine
from pytest_veo.archive.reference import choose
from pytest_veo.archive.reference import parse
from pytest_veo.archive.table import COLUMNS
from pytest_veo.cli.answer import complain
from pytest_veo.cli.progress import track
from pytest_veo.errors import BadSetting
from pytest_veo.errors import CommandError
from pytest_veo.errors import MissingDependency


if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_veo.archive.store import Run


TABLES = ("json", "csv", "parquet")
RUNS = ("prometheus", "otel", "pprof", "junit", "codequality")
_ROWS_AT_ONCE = 50_000
_BINARY = ("parquet", "pprof")
_NO_PICKLE = (AttributeError, ImportError, IndexError, KeyError, ValueError, TypeError)
"""What unpickling raises beside its own error for bytes that are no pickle."""


def add_parser(subparsers: Any) -> None:
    """Add `export` to the `veo` command.

    Args:
        subparsers: what `ArgumentParser.add_subparsers` returned.
    """
    parser = subparsers.add_parser(
        "export",
        help="archived runs in the formats of other tools",
        description="Writes a table of all runs (json, csv, parquet), or one run, by "
        "default the last (prometheus, otel, pprof, junit, codequality).",
    )
    parser.add_argument(
        "source",
        metavar="ARCHIVE[#RUN]",
        help="an archive or one run of it; with --format=pprof also a snapshot that "
        "tracemalloc dumped",
    )
    parser.add_argument("--format", required=True, choices=(*TABLES, *RUNS))
    parser.add_argument(
        "--table", default="counters", choices=tuple(COLUMNS), help="of the tables"
    )
    parser.add_argument("--where", metavar="SQL", help="only these rows of the table")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="default: the standard output"
    )
    parser.add_argument("--endpoint", metavar="URL", help="of an OTLP collector")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Export.

    Returns:
        0.

    Raises:
        ArchiveError: an archive or run that is not there, or cannot be read.
        BadSetting: options that do not go together.
        CommandError: what was written lacks lines that could not be read.
        MissingDependency: a format's library is not installed.
    """
    _check(args)
    if args.format == "pprof" and Path(args.source).is_file():
        _write(args, _snapshot(Path(args.source)))
        return 0
    if args.format in TABLES:
        complain(_table(args))
        return 0
    found = _read(args.source)
    if args.format == "otel":
        from pytest_veo.archive.export import otel

        count = otel.push(found, args.endpoint)
        print(f"sent {count} figures of run {found.header.run_id}")
    else:
        _write(args, _content(found, args.format))
    complain(found.unread)
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.format in _BINARY and not args.output:
        raise BadSetting(f"--format={args.format} needs a file: --output=FILE")
    if args.endpoint and args.format != "otel":
        raise BadSetting("--endpoint is of --format=otel only")
    if args.where and args.format not in TABLES:
        raise BadSetting(f"--where is of {', '.join(TABLES)} only")
    if args.output and args.format == "otel":
        raise BadSetting("--format=otel sends to a collector and writes no file")


def _read(source: str) -> Run:
    from pytest_veo.archive.export import run as rows

    archive, mark, ref = source.rpartition("#")
    reference = parse(ref if mark else "last", archive or ref, "RUN")
    if reference.archive is None or reference.file is not None or reference.runs != 1:
        raise BadSetting(f"RUN: {ref!r} is not one run, write its id or last")
    chosen = choose(reference, None, track=track)
    if not chosen.headers:
        raise CommandError(f"the archive {reference.archive!r} has no finished run yet")
    return rows.read(reference.archive, chosen.headers[0].run_id, track)


def _content(found: Run, form: str) -> bytes:
    if form == "prometheus":
        from pytest_veo.archive.export import prometheus

        return prometheus.text(found).encode()
    if form == "junit":
        from pytest_veo.archive.export import junit

        return junit.text(found).encode()
    if form == "codequality":
        from pytest_veo.report import code_quality
        from pytest_veo.report.problems import problems

        return code_quality.report(
            problems(found.records, fixtures=found.header.fixtures)
        ).encode()
    from pytest_veo.archive.export import pprof

    return pprof.of_run(found)


def _snapshot(path: Path) -> bytes:
    import pickle
    import tracemalloc

    from pytest_veo.archive.export import pprof

    try:
        snapshot = tracemalloc.Snapshot.load(str(path))
    except (pickle.UnpicklingError, OSError, EOFError, *_NO_PICKLE) as error:
        raise CommandError(
            f"cannot read the snapshot {str(path)!r}: {error}"
        ) from error
    if not isinstance(snapshot, tracemalloc.Snapshot):
        raise CommandError(f"{str(path)!r} holds no snapshot of tracemalloc")
    return pprof.of_snapshot(snapshot)


def _table(args: argparse.Namespace) -> list[str]:
    archive, mark, ref = args.source.rpartition("#")
    runs = None
    if mark:
        chosen = choose(parse(ref, archive, "RUN"), None, track=track)
        runs = [header.run_id for header in chosen.headers]
    with Engine(archive if mark else args.source, runs=runs, track=track) as engine:
        table = engine.table(args.table, args.where)
        unread = list(engine.unread)
    if args.format == "json":
        _write(args, _json(table))
    elif args.format == "csv":
        _write(args, _csv(table))
    else:
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise MissingDependency("pyarrow", "archive", "Parquet") from None
        buffer = io.BytesIO()
        table.attrs = {}
        table.to_parquet(buffer, index=False)
        _write(args, buffer.getvalue())
    return unread


def _parts(table: Any) -> Iterator[Any]:
    starts = range(0, max(1, len(table)), _ROWS_AT_ONCE)
    for start in track(starts, "writing"):
        yield table.iloc[start : start + _ROWS_AT_ONCE]


def _csv(table: Any) -> bytes:
    text = io.StringIO()
    for place, part in enumerate(_parts(table)):
        part.to_csv(text, index=False, header=not place)
    return text.getvalue().encode()


def _json(table: Any) -> bytes:
    lines: list[str] = []
    for part in _parts(table):
        text = part.to_json(orient="records", date_format="iso", date_unit="us")
        lines += map(json.dumps, json.loads(text))
    return "[\n{}\n]\n".format(",\n".join(lines)).encode()


def _write(args: argparse.Namespace, content: bytes) -> None:
    if not args.output:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)  # UTF-8, whatever the terminal speaks
        return
    path = Path(args.output)
    try:
        replace_file(path, content)
    except OSError as error:
        raise CommandError(
            f"cannot write {args.output!r}: {error.strerror or error}"
        ) from error
