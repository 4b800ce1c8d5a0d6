"""What is kept of a run: one header, and one record for each finished test.

Numbers and strings only. Schema history (all of it can be read):

1. First form: header `run.json`, one JSON object a line in `records.jsonl`.
2. A run knows its origin (`commit`, `branch`, `ci`, `ci_job`, `ci_url`, `shard`), its
   `gpu` and `driver`, and the `fixtures` that did not give back; a record has its
   test's `frames` and names its `environment`, which the first record that was made in
   it describes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

from pytest_veo.errors import ArchiveError
from pytest_veo.units import Unit
from pytest_veo.verdict import CLEAN
from pytest_veo.verdict import Finding
from pytest_veo.verdict import Outcome
from pytest_veo.verdict import Verdict


SCHEMA = 2
READABLE = (1, 2)
"""Every schema this version reads."""


class CounterRecord(NamedTuple):
    """One counter over one test's first run, in `unit`."""

    counter: str
    device: str
    unit: str
    before: int
    after: int
    growth: int
    """After minus before, less what wider fixtures took."""


class Record(NamedTuple):
    """One finished test."""

    nodeid: str
    worker: str = ""
    """The pytest-xdist worker that ran it; empty without one."""
    started_at: str = ""
    """ISO 8601, UTC."""
    duration_ns: int = 0
    test_outcome: str = ""
    """As pytest counts it: passed, failed, skipped."""
    verdict: Verdict = CLEAN
    counters: tuple[CounterRecord, ...] = ()
    frames: tuple[Mapping[str, Any], ...] = ()
    """What `frames.record` makes of each series, sweep and comparison."""
    environment: str = ""
    """Which of the run's environments it was made in; empty: the run's own."""
    environment_rows: tuple[tuple[str, str], ...] = ()
    """What that environment is, on the first record that names it."""

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dicts, lists, numbers and strings."""
        return {
            "schema": SCHEMA,
            "nodeid": self.nodeid,
            "worker": self.worker,
            "started_at": self.started_at,
            "duration_ns": self.duration_ns,
            "test_outcome": self.test_outcome,
            "verdict": _plain(self.verdict),
            "counters": [counter._asdict() for counter in self.counters],
            "frames": [dict(series) for series in self.frames],
            "environment": self.environment,
            "environment_rows": dict(self.environment_rows),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        """The record again.

        Raises:
            ArchiveError: the data is of another schema, or is no record.
        """
        _check_schema("a record", data)
        try:
            return cls(
                nodeid=data["nodeid"],
                worker=data["worker"],
                started_at=data["started_at"],
                duration_ns=data["duration_ns"],
                test_outcome=data["test_outcome"],
                verdict=_verdict(data["verdict"]),
                counters=tuple(CounterRecord(**row) for row in data["counters"]),
                frames=tuple(data.get("frames", ())),
                environment=data.get("environment", ""),
                environment_rows=tuple(data.get("environment_rows", {}).items()),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ArchiveError(f"no record: {type(error).__name__} {error}") from error

    def to_json(self) -> str:
        """One line."""
        return json.dumps(self.to_dict(), separators=(",", ":"))


def _check_schema(what: str, data: Mapping[str, Any]) -> None:
    schema = data.get("schema")
    if schema not in READABLE:
        known = " and ".join(map(str, READABLE))
        raise ArchiveError(f"{what} of schema {schema!r}, this reads {known}")


def _plain(verdict: Verdict) -> dict[str, Any]:
    findings = [
        {**finding._asdict(), "unit": finding.unit.value}
        for finding in verdict.findings
    ]
    outcome = verdict.outcome.value
    return {**verdict._asdict(), "outcome": outcome, "findings": findings}


def _verdict(data: Mapping[str, Any]) -> Verdict:
    plain = dict(data)
    plain["outcome"] = Outcome(plain["outcome"])
    plain["findings"] = tuple(
        Finding(**{**row, "unit": Unit(row["unit"]), "deltas": tuple(row["deltas"])})
        for row in plain["findings"]
    )
    for name in ("ruled_out", "evidence"):
        plain[name] = tuple(plain[name])
    return Verdict(**plain)


_ORIGIN = ("commit", "branch", "ci", "ci_job", "ci_url", "shard", "gpu", "driver")


class RunHeader(NamedTuple):
    """One session."""

    run_id: str
    started_at: str
    """ISO 8601, UTC."""
    environment: tuple[tuple[str, str], ...] = ()
    watched: tuple[str, ...] = ()
    """Counters that were read, as `probe.name device`."""
    not_watched: tuple[str, ...] = ()
    """What could not be read, with its reason."""
    finished_at: str = ""
    """Empty while the run goes on, and for ever if it was killed."""
    totals: tuple[tuple[str, int], ...] = ()
    """How many tests ended with each verdict."""
    commit: str = ""
    """The full hash; empty where it is not known, as with all that follows."""
    branch: str = ""
    ci: str = ""
    """The CI system: `github`, `gitlab`, `jenkins`, ..."""
    ci_job: str = ""
    """Name and number of the job."""
    ci_url: str = ""
    shard: str = ""
    """`2/8`: the second of eight parts of one suite."""
    gpu: str = ""
    """Names of the devices that were used, comma separated."""
    driver: str = ""
    """Version of the device driver."""
    fixtures: tuple[tuple[str, Verdict], ...] = ()
    """Fixtures that did not give back, by name."""
    schema: int = SCHEMA
    """The form it was written in."""

    def to_dict(self) -> dict[str, Any]:
        """The header as plain dicts, lists, numbers and strings."""
        return {
            "schema": SCHEMA,
            "run_id": self.run_id,
            "started_at": self.started_at,
            "finished_at": self.finished_at,
            "environment": dict(self.environment),
            "watched": list(self.watched),
            "not_watched": list(self.not_watched),
            "totals": dict(self.totals),
            **{name: getattr(self, name) for name in _ORIGIN},
            "fixtures": [
                {"fixture": name, "verdict": _plain(verdict)}
                for name, verdict in self.fixtures
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunHeader:
        """The header again.

        Raises:
            ArchiveError: the data is of another schema, or is no header.
        """
        _check_schema("a run", data)
        try:
            return cls(
                run_id=data["run_id"],
                started_at=data["started_at"],
                finished_at=data["finished_at"],
                environment=tuple(data["environment"].items()),
                watched=tuple(data["watched"]),
                not_watched=tuple(data["not_watched"]),
                totals=tuple(data["totals"].items()),
                **{name: str(data.get(name, "")) for name in _ORIGIN},
                fixtures=tuple(
                    (str(each["fixture"]), _verdict(each["verdict"]))
                    for each in data.get("fixtures", ())
                ),
                schema=data["schema"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ArchiveError(f"no run: {type(error).__name__} {error}") from error
