"""What frames came to, on reports: there while a report is logged, else in a file.

The record of a test is tens of thousands of plain values, and pytest keeps all reports
until the session ends. In memory they would be growth in the window of the test that
recorded them, which a leak check would hold against it.
"""

from __future__ import annotations

import array
import json
import tempfile
from collections.abc import Generator
from collections.abc import Iterator
from typing import IO
from typing import Any

import pytest


SECTION = "veo frames"
REPORT_ATTRIBUTE = "veo_frames"
"""On the call report of a test that recorded frames: a list of plain dicts."""

_SLIP = "_veo_frames_slip"
_HEAVY = "intervals_ns"

Records = list[dict[str, Any]]
Slip = tuple[int, int, int]
"""Where in the file: offset, bytes of the records, bytes of their frame times."""


class Spool:
    """Records in a file without a name; it goes with the process."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None

    def open(self) -> IO[bytes]:
        """The file, made at the first call."""
        if self._file is None:
            # Unbuffered: a buffer would be one more thing that grows.
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        return self._file

    def write(self, records: Records) -> Slip:
        """Keep records; frame times apart, since few ask for them."""
        times = array.array("q")
        light = []
        for record in records:
            heavy = record.get(_HEAVY)
            if heavy is not None:
                times.extend(heavy)
            light.append(record | {_HEAVY: len(heavy)} if heavy is not None else record)
        said = json.dumps(light).encode()
        file = self.open()
        offset = file.seek(0, 2)
        file.write(said)
        file.write(times.tobytes())
        return offset, len(said), 8 * len(times)

    def read(self, slip: Slip, *, whole: bool) -> Records:
        """Records again; with their frame times, or how many there are."""
        offset, said_bytes, times_bytes = slip
        file = self.open()
        file.seek(offset)
        records: Records = json.loads(file.read(said_bytes))
        if whole:
            times = array.array("q", file.read(times_bytes)).tolist()
            begin = 0
            for record in records:
                if (count := record.get(_HEAVY)) is not None:
                    record[_HEAVY] = times[begin : begin + count]
                    begin += count
        return records

    def close(self) -> None:
        """Let the file go."""
        if self._file is not None:
            self._file.close()
            self._file = None


class FrameReports:
    """Sees to the records of a session's reports.

    In a worker of pytest-xdist and in its controller, too: a report crosses with its
    records and lies in a file on either side.
    """

    def __init__(self) -> None:
        self.spool = Spool()

    def attach(self, report: pytest.TestReport, records: Records) -> None:
        """Give a report its records, for when it is logged."""
        setattr(report, _SLIP, self.spool.write(records))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(
        self, report: pytest.TestReport
    ) -> Generator[None, None, None]:
        """Put the records on the report for as long as others look at it."""
        slip = report.__dict__.pop(_SLIP, None)
        if slip is not None:
            setattr(report, REPORT_ATTRIBUTE, self.spool.read(slip, whole=True))
        try:
            yield
        finally:
            records = report.__dict__.pop(REPORT_ATTRIBUTE, None)
            if records is not None:
                setattr(report, _SLIP, slip or self.spool.write(records))

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Tell of sweeps, and of tests whose frames proved nothing."""
        told = [
            (report.nodeid, text)
            for report in _reports(terminalreporter)
            for title, text in report.sections
            if title == SECTION
        ]
        records = [record for _, record in self.records(terminalreporter)]
        if any("cell" in record for record in records):
            from pytest_veo.frames.variants import tables_of

            told += tables_of(records)
        if not told:
            return
        terminalreporter.section(SECTION)
        for nodeid, text in told:
            terminalreporter.write_line(nodeid, bold=True)
            terminalreporter.write_line(text)

    def records(
        self, terminal: pytest.TerminalReporter
    ) -> Iterator[tuple[pytest.TestReport, dict[str, Any]]]:
        """Every record of the session, without frame times, with its report."""
        for report in _reports(terminal):
            slip = getattr(report, _SLIP, None)
            if slip is not None:
                for record in self.spool.read(slip, whole=False):
                    yield report, record

    def pytest_unconfigure(self) -> None:
        """Let the file go."""
        self.spool.close()


def _reports(terminal: pytest.TerminalReporter) -> list[pytest.TestReport]:
    return [
        report
        for reports in terminal.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
    ]
