"""A session told to others: the page, a CI system's annotations and step summary.

Runs where results are shown and sees each record as it arrives. What it cannot write it
tells; a test's outcome never depends on it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple
from typing import Protocol

import pytest

from pytest_veo import options
from pytest_veo.errors import BadSetting
from pytest_veo.errors import MissingDependency
from pytest_veo.errors import VeoError


if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Mapping

    from pytest_veo.archive.record import Record
    from pytest_veo.archive.record import RunHeader
    from pytest_veo.report.html.page import Compared
    from pytest_veo.report.problems import Problem
    from pytest_veo.verdict import Verdict


SUMMARY_LIMIT_BYTES = 1 << 20
"""GitHub refuses the summary of a step that is larger."""
_ANNOTATORS = ("pytest_github_actions_annotate_failures",)
"""Plugins that annotate failed tests by themselves."""


class PublishSettings(NamedTuple):
    """What was asked for."""

    page: Path | None
    code_quality: Path | None
    annotate: bool
    """In GitHub's form; no other CI system reads annotations from the output."""
    summary: Path | None
    """The file that becomes the step's summary."""
    prefix: str
    """The root directory as seen from the repository's."""

    @property
    def is_needed(self) -> bool:
        """Whether anything was asked for."""
        return bool(self.page or self.code_quality or self.annotate)


_WORKSPACES = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR", "WORKSPACE")
"""Where GitHub, GitLab and Jenkins check a repository out."""


def resolve(config: pytest.Config, environ: Mapping[str, str]) -> PublishSettings:
    """The settings.

    Raises:
        BadSetting: an option means nothing.
        MissingDependency: the page's template engine is not installed; better said
            before the first test than after the last.
    """
    page, place = options.text(config, "html")
    if page:
        _check_page(place, config.invocation_params.dir / page)
    how, place = options.text(config, "annotate")
    if how not in options.ANNOTATE:
        known = ", ".join(options.ANNOTATE)
        raise BadSetting(f"{place}: {how!r} is none of {known}")
    annotate = how == "github" or (
        how == "auto" and environ.get("GITHUB_ACTIONS") == "true"
    )
    quality, quality_place = options.text(config, "code_quality")
    if quality:
        _check_file(quality_place, config.invocation_params.dir / quality)
    workspaces = (environ.get(name, "") for name in _WORKSPACES)
    summary = environ.get("GITHUB_STEP_SUMMARY") if annotate else None
    return PublishSettings(
        page=config.invocation_params.dir / page if page else None,
        code_quality=config.invocation_params.dir / quality if quality else None,
        annotate=annotate,
        summary=Path(summary) if summary else None,
        prefix=_prefix(config.rootpath, next(filter(None, workspaces), "")),
    )


def _check_page(place: str, path: Path) -> None:
    import importlib.util

    if importlib.util.find_spec("jinja2") is None:
        raise MissingDependency("jinja2", "html", place)
    _check_file(place, path)


def _check_file(place: str, path: Path) -> None:
    if path.is_dir():
        raise BadSetting(f"{place}: {str(path)!r} is a folder, name a file")


def _prefix(root: Path, workspace: str) -> str:
    if not workspace:
        return ""
    try:
        found = root.resolve().relative_to(Path(workspace).resolve()).as_posix()
    except ValueError:
        return ""  # a root directory outside of the repository has no path in it
    return "" if found == "." else found


class Results(Protocol):
    """What has gathered the session: `results`, or `unchecked` without a check."""

    fixtures: list[tuple[str, Verdict]]
    """Those that did not give back."""

    @property
    def archive_url(self) -> str | None:
        """Where the session is archived; None where it is not."""

    def finished_header(self) -> RunHeader:
        """The run as it ended."""

    def outcomes(self) -> Mapping[str, int]:
        """Tests by outcome."""


class Publisher:
    """Gathers a session's records and tells them at its end."""

    def __init__(
        self, config: pytest.Config, settings: PublishSettings, results: Results
    ) -> None:
        self.config = config
        self.settings = settings
        self.results = results
        self.records: list[Record] = []
        self.lines: dict[str, int] = {}
        """Where tests begin, from 1; only of those that have a problem."""
        self._told: list[tuple[str, bool]] = []
        self._tells_failed = not any(
            config.pluginmanager.has_plugin(name) for name in _ANNOTATORS
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note where a test stands in its file."""
        if report.when == "setup" and report.location[1] is not None:
            self.lines[report.nodeid] = report.location[1] + 1

    def pytest_veo_record(self, record: Mapping[str, Any]) -> None:
        """Keep a test's record."""
        from pytest_veo.archive.record import Record

        self.records.append(Record.from_dict(record))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write the page and the summary."""
        if self.config.option.collectonly:
            return
        if self.settings.page is not None:
            self._write_page(self.settings.page)
        if self.settings.code_quality is not None:
            self._write_code_quality(self.settings.code_quality)
        if self.settings.summary is not None:
            self._write_summary(self.settings.summary)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the annotations, and where the page is."""
        if self.config.option.collectonly:
            return
        for line, is_bad in self._told:
            terminalreporter.write_line(line, red=is_bad)
        if self.settings.annotate:
            terminalreporter.ensure_newline()
            for line in self._annotations():
                terminalreporter.write_line(line)

    # ------------------------------------------------------------------- the page

    def _write_page(self, path: Path) -> None:
        from pytest_veo.archive.store import Run
        from pytest_veo.report.html.page import render
        from pytest_veo.report.html.page import write

        shown = os.path.relpath(path)
        try:
            header = self.results.finished_header()
            past = self._past(header.run_id)
            text = render(
                Run(header=header, records=tuple(self.records)),
                past=past,
                fixtures=self.results.fixtures,
                compared=self._compared(),
            )
            write(path, text)
        except VeoError as error:
            self._told.append((f"page: {error}", True))
        except OSError as error:
            reason = error.strerror or error
            self._told.append((f"page: cannot write {shown!r}: {reason}", True))
        else:
            self._told.append((f"page: {shown}", False))

    def _past(self, run_id: str) -> Any:
        from pytest_veo.report.html.past import read_past

        archive = self.results.archive_url
        if archive is None:
            return None
        try:
            return read_past(archive, run_id)
        except VeoError as error:
            self._told.append((f"page: without earlier runs: {error}", True))
            return None

    def _compared(self) -> Compared | None:
        from pytest_veo.report.html.against import compared_of

        check = self.config.pluginmanager.get_plugin("veo-baseline")
        result = getattr(check, "result", None)
        return None if result is None else compared_of(result, self._ids())

    def _ids(self) -> set[str]:
        return {record.nodeid for record in self.records}

    # --------------------------------------------------------------- the CI system

    def _problems(self) -> list[Problem]:
        from pytest_veo.report.problems import problems

        check = self.config.pluginmanager.get_plugin("veo-baseline")
        result = getattr(check, "result", None)
        worse = getattr(result, "worse", ())
        return problems(
            self.records,
            fixtures=self.results.fixtures,
            lines=self.lines,
            worse=[(each.key.nodeid, each.key.name, each.text()) for each in worse],
        )

    def _annotations(self) -> Iterator[str]:
        from pytest_veo.report.annotations import github

        found = self._problems()
        if not self._tells_failed:
            failed = {r.nodeid for r in self.records if r.test_outcome == "failed"}
            found = [each for each in found if each.subject not in failed]
        return github(found, self.settings.prefix)

    def _write_code_quality(self, path: Path) -> None:
        from pytest_veo.report.code_quality import report

        shown = os.path.relpath(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            text = report(self._problems(), self.settings.prefix)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            reason = error.strerror or error
            told = f"code quality: cannot write {shown!r}: {reason}"
            self._told.append((told, True))
        else:
            self._told.append((f"code quality: {shown}", False))

    def _write_summary(self, path: Path) -> None:
        from pytest_veo.report.step_summary import markdown

        header = self.results.finished_header()
        text = markdown(
            self._problems(),
            self.results.outcomes(),
            not_watched=header.not_watched,
            gpu=" ".join((header.gpu, *(value for _, value in header.environment))),
        )
        try:
            taken = path.stat().st_size if path.exists() else 0
            if taken + len(text.encode()) > SUMMARY_LIMIT_BYTES:
                self._told.append(("step summary: too long, left out", True))
                return
            with path.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            reason = error.strerror or error
            self._told.append((f"step summary: cannot write {path}: {reason}", True))
