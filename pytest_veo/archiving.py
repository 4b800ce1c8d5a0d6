"""A session's part in the archive: opened, fed and closed; never in the tests' way.

What goes wrong is a complaint, told once at the end. It decides nothing, unless
`--veo-strict` asks for that.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING
from typing import Any

from pytest_veo.errors import VeoError


if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping

    import pytest

    from pytest_veo.archive.record import RunHeader
    from pytest_veo.archive.writer import Writer
    from pytest_veo.settings import Settings
    from pytest_veo.verdict import Verdict


FRAMES_ATTRIBUTE = "veo_frames"
"""On the call report of a test that recorded frames, by `frames_plugin`."""


class SessionArchive:
    """Keeps the session's records, where an archive is asked for.

    Args:
        config: the session's.
        settings: what is asked for.

    Raises:
        VeoError: the archive cannot be written, and the settings are strict.
    """

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.complaints: list[str] = []
        self._config = config
        self._has_failed = False
        self._frames: dict[str, list[dict[str, Any]]] = {}
        """Of tests whose record is still to come."""
        self._rows: dict[str, str] = {}
        """What the processes that ran tests told of their environments."""
        self._started = datetime.datetime.now(tz=datetime.UTC)
        self.url: str | None = None
        """The archive; None where the session is not kept in one."""
        self._writer = self._open(settings)

    def _open(self, settings: Settings) -> Writer | None:
        if settings.archive is None or self._config.option.collectonly:
            return None
        from pytest_veo.archive.place import Place
        from pytest_veo.archive.writer import open_writer

        here = self._config.invocation_params.dir
        try:
            writer = open_writer(settings.archive, here, self._header())
        except VeoError as error:
            if settings.strict:
                raise
            self._complain(error)
            return None
        place = Place(settings.archive)
        self.url = str(here / place.folder) if place.folder else settings.archive
        return writer

    def _header(self) -> RunHeader:
        from pytest_veo.archive.record import RunHeader
        from pytest_veo.archive.run_id import make_run_id
        from pytest_veo.telemetry import ci
        from pytest_veo.telemetry import environment

        origin = ci.origin(self._config.rootpath)
        if not origin.shard:
            origin = origin._replace(shard=_shard(self._config))
        return RunHeader(
            run_id=make_run_id(self._started, origin),
            started_at=self._started.isoformat(timespec="milliseconds"),
            environment=environment.describe(environment_rows(self._config)),
            **origin._asdict(),
        )

    @property
    def shown(self) -> str:
        """The run's place, as people would name it; empty where there is none."""
        return "" if self._writer is None else self._writer.shown

    def see(self, report: pytest.TestReport) -> None:
        """Keep the frames that a report brings, for the record of its test."""
        frames = getattr(report, FRAMES_ATTRIBUTE, None)
        if frames is not None:
            self._frames[report.nodeid] = frames

    def complete(self, data: dict[str, Any]) -> None:
        """Put what came on other reports into a record."""
        data["frames"] = self._frames.pop(data["nodeid"], [])
        self._rows.update(data["environment_rows"])

    def add(self, data: Mapping[str, Any]) -> None:
        """Write one record."""
        if self._writer is None:
            return
        try:
            self._writer.add(data)
        except VeoError as error:
            # What the first one says, all others would.
            if not self._has_failed:
                self._complain(error)
            self._has_failed = True

    def finish(
        self,
        totals: Mapping[str, int],
        watched: Iterable[str] = (),
        not_watched: Iterable[str] = (),
        fixtures: Iterable[tuple[str, Verdict]] = (),
    ) -> None:
        """Close the run."""
        if self._writer is None:
            return
        header = self.ended(totals, watched, not_watched, fixtures)
        try:
            self._writer.finish(header)
        except VeoError as error:
            self._complain(error)

    def ended(
        self,
        totals: Mapping[str, int],
        watched: Iterable[str] = (),
        not_watched: Iterable[str] = (),
        fixtures: Iterable[tuple[str, Verdict]] = (),
    ) -> RunHeader:
        """The run as it ended, kept in an archive or not."""
        now = datetime.datetime.now(tz=datetime.UTC)
        begun = self._header() if self._writer is None else self._writer.header
        rows = dict(begun.environment) | self._rows
        return begun._replace(
            environment=tuple(sorted(rows.items())),
            gpu=rows.get("gpu", ""),
            driver=rows.get("driver", ""),
            finished_at=now.isoformat(timespec="milliseconds"),
            watched=tuple(sorted(watched)),
            not_watched=tuple(not_watched),
            totals=tuple(sorted(totals.items())),
            fixtures=tuple(fixtures),
        )

    def tell(self, terminalreporter: Any) -> None:
        """What went wrong with it, and where it is."""
        for complaint in self.complaints:
            terminalreporter.write_line(complaint, red=True)
        if self.shown:
            terminalreporter.write_line(f"archived: {self.shown}")

    def _complain(self, error: VeoError) -> None:
        self.complaints.append(f"archive: {error}")


def environment_rows(config: pytest.Config) -> dict[str, str]:
    """What plugins add to the description of the environment."""
    extra: dict[str, str] = {}
    for rows in config.hook.pytest_veo_environment(config=config):
        extra.update(rows or {})
    return extra


def _shard(config: pytest.Config) -> str:
    """`2/8`, where the options of pytest-split or pytest-shard say so."""
    for index, total, first in (("group", "splits", 1), ("shard_id", "num_shards", 0)):
        found = config.getoption(index, None), config.getoption(total, None)
        if isinstance(found[0], int) and isinstance(found[1], int) and found[1] > 1:
            return f"{found[0] + 1 - first}/{found[1]}"
    return ""
