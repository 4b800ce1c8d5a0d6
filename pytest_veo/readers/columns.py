"""What a reader asks of a table, and what it gets."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_veo.readers.source import Source


class Kind(enum.Enum):
    """How the cells of a column are read."""

    SECONDS = 9
    MILLISECONDS = 6
    MICROSECONDS = 3
    NANOSECONDS = 0
    DATE_TIME = "date and time"
    """A local date and time: nanoseconds since 1970 as if it were UTC."""
    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A column to read.

    Times become nanoseconds whatever their unit in the file.
    """

    name: str
    kind: Kind
    required: bool = False
    """Whether a cell without a value is an error."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column as read.

    Times and integers are int64, reals float64 (NaN where missing), texts int32 codes
    into `vocabulary`. Where `missing` is true, the value says nothing (0 or NaN).
    """

    name: str
    values: npt.NDArray[Any]
    missing: npt.NDArray[np.bool_]
    vocabulary: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The wanted columns of a file, with the way back to its lines."""

    source: Source
    columns: tuple[Column, ...]
    rows: int
    lines: npt.NDArray[np.int32]
    """For each row its line in the file, from 1."""
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Column:
        """The column named `name`, which must have been asked for."""
        return next(column for column in self.columns if column.name == name)

    def get(self, name: str | None) -> Column | None:
        """The column named `name`, or None when it was not read."""
        return next((column for column in self.columns if column.name == name), None)
