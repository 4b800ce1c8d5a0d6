"""Which runs a reference means: a file, a run, the last one, a branch, a median.

`[ARCHIVE#]REF`, where REF is a baseline file, a run's id, `last`, `branch:NAME` (its
last twenty runs) or `median:N` (the last N of all). Runs that were made somewhere else,
on another GPU, driver or allocator setting, are left out, and it is said why.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from typing import NamedTuple

from pytest_veo.archive import baseline_file
from pytest_veo.archive.baseline import Past
from pytest_veo.archive.baseline_file import Baseline
from pytest_veo.archive.environment_match import decisive
from pytest_veo.archive.environment_match import differences
from pytest_veo.archive.figures import figures_of
from pytest_veo.archive.place import Place
from pytest_veo.archive.store import list_runs
from pytest_veo.archive.store import read_header
from pytest_veo.archive.store import read_raw
from pytest_veo.archive.store import records_of
from pytest_veo.archive.track import Track
from pytest_veo.archive.track import no_track
from pytest_veo.errors import ArchiveError
from pytest_veo.errors import BadSetting


if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Sequence

    from pytest_veo.archive.baseline import Key
    from pytest_veo.archive.record import RunHeader


BRANCH_RUNS = 20
"""How many runs of a branch are looked at."""
_MOST_RUNS = 1000
_FORMS = (
    "a baseline file (*.json), a run's id, last, branch:NAME or median:N, with "
    "ARCHIVE# in front where it is in another archive"
)
_RUN_ID = re.compile(r"\d{8}T\d{6}\S*")


class Reference(NamedTuple):
    """A reference, read but not looked up."""

    text: str
    archive: str | None
    file: Path | None = None
    run_id: str = ""
    branch: str = ""
    """Empty: all branches."""
    runs: int = 1

    @property
    def many(self) -> str:
        """What was asked for, in words."""
        of_branch = f" on branch {self.branch!r}" if self.branch else ""
        return f"finished run{of_branch}"


def parse(text: str, archive: str | None, place: str) -> Reference:
    """Read a reference.

    Args:
        text: as it was given.
        archive: the archive that is meant where none is in front of the reference.
        place: where it is written, for messages.

    Raises:
        BadSetting: it is none; the message has the forms.
    """
    own, hash_sign, rest = text.rpartition("#")
    if hash_sign and own:
        archive, ref = own, rest
    else:
        ref = text
    folder = _run_folder(ref)
    if folder is not None:
        return Reference(text, str(folder.parent.parent), run_id=folder.name)
    if ref.endswith(".json"):
        return Reference(text, archive, file=Path(ref))
    found = _in_archive(text, ref, archive, place)
    if found.archive is None:
        raise BadSetting(
            f"{place}: {text!r} is looked up in an archive, and none is named: add "
            "--veo-archive (veo: --archive) or write ARCHIVE#REF"
        )
    return found


def _run_folder(ref: str) -> Path | None:
    path = Path(ref)
    if "/" in ref and "://" not in ref and (path / "run.json").is_file():
        return path.absolute()
    return None


def _in_archive(text: str, ref: str, archive: str | None, place: str) -> Reference:
    word, colon, value = ref.partition(":")
    if ref == "last":
        return Reference(text, archive)
    if word == "branch" and value:
        return Reference(text, archive, branch=value, runs=BRANCH_RUNS)
    if word == "median" and colon:
        if not value.isdecimal() or not 1 <= int(value) <= _MOST_RUNS:
            raise BadSetting(
                f"{place}: {value!r} is no number of runs, write e.g. median:20"
            )
        return Reference(text, archive, runs=int(value))
    if _RUN_ID.fullmatch(ref):
        return Reference(text, archive, run_id=ref)
    raise BadSetting(f"{place}: {text!r} is no baseline, write {_FORMS}")


def check(reference: Reference) -> None:
    """Refuse what is named and not there; that there is no run yet is no error.

    Raises:
        ArchiveError: no such run, or no archive where one is named in the reference.
    """
    if reference.run_id:
        choose(reference, None)
    elif "#" in reference.text:
        list_runs(Place(str(reference.archive)))


class Chosen(NamedTuple):
    """The runs that a reference means here."""

    headers: tuple[RunHeader, ...]
    """Oldest first."""
    left_out: tuple[str, ...] = ()
    """Runs that cannot be compared, and why."""


def choose(
    reference: Reference,
    environment: Iterable[tuple[str, str]] | None,
    *,
    but: str = "",
    track: Track = no_track,
) -> Chosen:
    """Look a reference up.

    Args:
        reference: to runs of an archive.
        environment: what the runs must agree with; None: with nothing.
        but: id of the run that goes on now.
        track: shows how far it has come.

    Raises:
        ArchiveError: no archive, or a run that is named and not there.
    """
    assert reference.archive is not None
    place = Place(reference.archive)
    known = [run_id for run_id in list_runs(place) if run_id != but]
    if reference.run_id:
        if reference.run_id not in known:
            raise ArchiveError(f"there is no run {reference.run_id!r} in {place.url!r}")
        known = [reference.run_id]
    headers: list[RunHeader] = []
    left_out: list[str] = []
    for run_id in track(known[::-1], "looking for runs"):
        if len(headers) == reference.runs or len(left_out) == _MOST_RUNS:
            break
        try:
            header = read_header(place, run_id)
        except ArchiveError as error:
            left_out.append(f"{run_id}: {error}")
            continue
        if not reference.run_id and not _is_wanted(header, reference):
            continue
        foreign = foreign_to(header, environment)
        if foreign:
            left_out.append(f"{run_id}: {'; '.join(foreign)}")
        else:
            headers.append(header)
    return Chosen(tuple(reversed(headers)), tuple(left_out))


def _is_wanted(header: RunHeader, reference: Reference) -> bool:
    on_branch = not reference.branch or header.branch == reference.branch
    return bool(header.finished_at) and on_branch


def environment_of(header: RunHeader) -> tuple[tuple[str, str], ...]:
    """A run's environment with its GPU and driver."""
    rows = dict(header.environment)
    for name, value in (("gpu", header.gpu), ("driver", header.driver)):
        if value:
            rows[name] = value
    return tuple(sorted(rows.items()))


def foreign_to(
    header: RunHeader, environment: Iterable[tuple[str, str]] | None
) -> tuple[str, ...]:
    """Why a run cannot be compared with those of an environment."""
    if environment is None:
        return ()
    return differences(environment_of(header), environment)


class Looked(NamedTuple):
    """A baseline, or why there is none."""

    baseline: Baseline | None
    notes: tuple[str, ...] = ()
    """What was left out."""
    missing: str = ""
    """Why there is no baseline."""


def look_up(reference: Reference, environment: tuple[tuple[str, str], ...]) -> Looked:
    """The baseline that a reference means in this environment.

    Args:
        reference: as it was given.
        environment: of the run that is to be compared.

    Raises:
        ArchiveError: what is named is not there or cannot be read.
    """
    if reference.file is not None:
        return _from_file(reference, environment)
    chosen = choose(reference, environment)
    if chosen.headers:
        return _from_runs(reference, chosen)
    if chosen.left_out:
        return Looked(None, missing=f"FOREIGN BASELINE, {_told(chosen.left_out)}")
    return Looked(
        None,
        missing=f"NO BASELINE: {reference.archive!r} has no {reference.many} yet",
    )


def _told(left_out: Sequence[str]) -> str:
    more = f"; and {len(left_out) - 1} more" if len(left_out) > 1 else ""
    return f"nothing is compared: {left_out[0]}{more}"


def _from_file(
    reference: Reference, environment: tuple[tuple[str, str], ...]
) -> Looked:
    assert reference.file is not None
    found = baseline_file.read(reference.file)._replace(name=reference.text)
    foreign = differences(found.environment, environment)
    if foreign:
        reason = f"{reference.text}: {'; '.join(foreign)}"
        return Looked(None, missing=f"FOREIGN BASELINE, nothing is compared: {reason}")
    return Looked(found)


def _from_runs(reference: Reference, chosen: Chosen) -> Looked:
    values: dict[Key, list[float]] = {}
    units: dict[Key, str] = {}
    place = Place(str(reference.archive))
    unread = 0
    for header in chosen.headers:
        raw = read_raw(place, header.run_id)
        for key, (value, unit) in figures_of(records_of(raw)).items():
            values.setdefault(key, []).append(value)
            units[key] = unit
        unread += len(raw.unread)
    notes = []
    if chosen.left_out:
        notes.append(
            f"{len(chosen.left_out)} runs are foreign and left out, "
            f"the last: {chosen.left_out[0]}"
        )
    if unread:
        notes.append(f"{unread} lines of earlier runs could not be read")
    return Looked(
        Baseline(
            name=_name(reference, chosen.headers),
            environment=decisive(environment_of(chosen.headers[-1])),
            figures={key: Past.of(found, units[key]) for key, found in values.items()},
            values=values,
        ),
        tuple(notes),
    )


def _name(reference: Reference, headers: Sequence[RunHeader]) -> str:
    newest = headers[-1]
    commit = f" of {newest.commit[:10]}" if newest.commit else ""
    if len(headers) == 1:
        return f"run {newest.run_id}{commit}"
    return f"{reference.text}, {len(headers)} runs up to {newest.run_id}{commit}"
