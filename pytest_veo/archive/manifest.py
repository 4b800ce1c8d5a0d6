"""Which runs lie in the tables that `veo compact` made, and in which files.

`tables/manifest.json` is replaced as a whole once new files are written: a reader finds
the state before or after, and each run exactly once. A file that no manifest names is
nobody's. A month whose files cannot be read is as if it had never been gathered.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from typing import NamedTuple

from pytest_veo.archive.place import Place
from pytest_veo.archive.table import COLUMNS
from pytest_veo.archive.table import Table
from pytest_veo.errors import ArchiveError


MANIFEST = "tables/manifest.json"
FORM = 1


class Month(NamedTuple):
    """The runs that began in one month, gathered."""

    month: str
    """`2026-11`."""
    runs: tuple[str, ...]
    files: tuple[tuple[Table, str], ...]
    """Each table's file, below the archive."""
    unread: tuple[str, ...] = ()
    """What of its runs could not be read, as `<run_id>/records.jsonl:12: why`."""

    def file(self, table: Table) -> str:
        """The file with this table's rows."""
        return dict(self.files)[table]


class Manifest(NamedTuple):
    """All that is gathered."""

    months: tuple[Month, ...] = ()

    @property
    def runs(self) -> frozenset[str]:
        """Every run that lies in a table; made anew each time that it is asked for."""
        return frozenset(run for month in self.months for run in month.runs)

    def with_month(self, new: Month) -> Manifest:
        """The same with one month as it is now; without it where no run is left."""
        others = [month for month in self.months if month.month != new.month]
        found = [*others, new] if new.runs else others
        return Manifest(tuple(sorted(found)))


def read_manifest(place: Place) -> Manifest:
    """What is gathered so far; nothing where nothing ever was.

    Raises:
        ArchiveError: there is a manifest that cannot be read.
    """
    if not place.exists(MANIFEST):
        return Manifest()
    try:
        data = json.loads(place.read(MANIFEST))
        if data["form"] != FORM:
            raise ArchiveError(
                f"cannot read {place.shown(MANIFEST)}: form {data['form']!r}, "
                f"this reads {FORM}"
            )
        return Manifest(tuple(_month(each) for each in data["months"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArchiveError(
            f"cannot read {place.shown(MANIFEST)}: {type(error).__name__} {error}"
        ) from error


def _month(data: dict[str, Any]) -> Month:
    files = data["files"]
    return Month(
        month=str(data["month"]),
        runs=tuple(map(str, data["runs"])),
        files=tuple((table, str(files[table])) for table in COLUMNS),
        unread=tuple(map(str, data.get("unread", ()))),
    )


def write_manifest(place: Place, manifest: Manifest) -> None:
    """Put a new manifest in the old one's place.

    Raises:
        ArchiveError: it cannot be written; the old one still stands.
    """
    months: Iterable[dict[str, Any]] = (
        {**month._asdict(), "files": dict(month.files)} for month in manifest.months
    )
    text = json.dumps({"form": FORM, "months": list(months)}, indent=1)
    place.write(MANIFEST, text.encode() + b"\n")
