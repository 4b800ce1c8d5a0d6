"""What can go wrong, drawn as one tree.

VeoError
├── ProbeUnavailable   a source cannot be read here; the reason is for people
├── BadQuantity        text that is no size, count or duration
├── BadSetting         an option, ini key or marker argument that means nothing
├── ArchiveError       an archive that cannot be written or read
├── FramesError        a frame series that cannot be used
│   └── CaptureError   a capture file that cannot be read, and where
├── MissingDependency  an optional library that a feature needs
└── CommandError       ends the `veo` command with an exit status
"""

from __future__ import annotations


class VeoError(Exception):
    """Base of every error this package raises on purpose."""


class ProbeUnavailable(VeoError):
    """A source of counters cannot be read here."""

    def __init__(self, probe: str, reason: str) -> None:
        super().__init__(f"{probe}: {reason}")
        self.probe = probe
        self.reason = reason


class BadQuantity(VeoError, ValueError):
    """Text that is no size, count or duration."""


class BadSetting(VeoError, ValueError):
    """An option, ini key or marker argument that means nothing."""


class ArchiveError(VeoError):
    """An archive that cannot be written or read."""


class FramesError(VeoError, ValueError):
    """A frame series or capture that cannot be used as it is."""


class CaptureError(FramesError):
    """A capture file that cannot be read: what, in which line and column.

    Attributes:
        file: the file as it was named by the caller.
        line: the line counted from 1, or None where a format has no lines.
        column: the column's name or the key's path, or None.
        reason: the message without the place.
    """

    def __init__(
        self,
        file: str,
        reason: str,
        *,
        line: int | None = None,
        column: str | None = None,
    ) -> None:
        place = file if line is None else f"{file}:{line}"
        if column is not None:
            place += f", column {column!r}"
        super().__init__(f"{place}: {reason}")
        self.file = file
        self.line = line
        self.column = column
        self.reason = reason


class MissingDependency(VeoError, ImportError):
    """An optional library that a feature needs is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed: "
            f"pip install 'pytest-veo[{extra}]'"
        )
        self.package = package
        self.extra = extra


class CommandError(VeoError):
    """Ends the `veo` command with a message and an exit status."""

    def __init__(self, message: str, exit_status: int = 2) -> None:
        super().__init__(message)
        self.exit_status = exit_status
