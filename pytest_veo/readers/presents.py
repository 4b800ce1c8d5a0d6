"""Rows of presents: whose they are, and what their columns mean."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_veo.frames.series import Bools
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import Event
from pytest_veo.frames.series import Int64s
from pytest_veo.readers.capture import parse_address
from pytest_veo.readers.capture import parse_id
from pytest_veo.readers.columns import Column


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Presents:
    """One program's swapchain, or a whole table: a row a frame."""

    stamps_ns: Int64s
    lines: npt.NDArray[np.int32]
    interval_ns: Int64s | None = None
    """Frame times as the tool wrote them; 0 where it wrote none."""
    display_ns: Int64s | None = None
    """When each frame reached the screen; `MISSING_NS` where it never did."""
    dropped: Bools | None = None
    display_interval_ns: Int64s | None = None
    """Time since the frame before reached the screen; 0 where not displayed."""
    generated: Bools | None = None
    """Rows that are no present of their own: frames a driver put between two."""

    def take(self, rows: npt.NDArray[np.intp]) -> Presents:
        """These rows only, in this order."""
        fields: dict[str, Any] = {
            field.name: None if value is None else value[rows]
            for field in dataclasses.fields(self)
            for value in [getattr(self, field.name)]
        }
        return Presents(**fields)


@dataclasses.dataclass(frozen=True, slots=True)
class Owner:
    """Whose frames they are."""

    process: str = ""
    process_id: int | None = None
    swapchain: int | None = None

    @property
    def name(self) -> str:
        """`game.exe[1520] 0x1927feb15a0`: what messages call the series."""
        name = self.process or "frames"
        if self.process_id is not None:
            name += f"[{self.process_id}]"
        return name if self.swapchain is None else f"{name} {self.swapchain:#x}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What the columns of a format mean."""

    tool: str
    event: Event
    clock: Clock
    stamp_column: str
    interval_column: str
    interval_follows: bool = False
    """True: a frame time reaches to the next stamp, not back to the one before."""
    has_lines: bool = True
    """False: rows are entries of a list, counted from 0, and no lines of a text."""

    def place(self, row: int, column: str) -> dict[str, Any]:
        """Where an error is, as `CaptureError` takes it."""
        if self.has_lines:
            return {"line": row, "column": column}
        return {"column": f"{column}[{row}]"}

    def words(self, row: int) -> str:
        """Where a remark is about."""
        return f"line {row}" if self.has_lines else f"frame {row}"


def owners_of(
    rows: int,
    process: Column | None,
    process_id: Column | None,
    swapchain: Column | None,
) -> tuple[list[Owner], npt.NDArray[np.int64]]:
    """Who owns each row: the owners in order of appearance, and a number per row."""
    columns = (process, process_id, swapchain)
    if all(column is None or len(column.vocabulary) == 1 for column in columns):
        # One zero, seen `rows` times.
        return [_owner(columns, 0)], np.broadcast_to(np.int64(0), rows)
    key = np.zeros(rows, np.int64)
    for column in columns:
        if column is not None:
            key = key * max(len(column.vocabulary), 1) + column.values
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    owners = [_owner(columns, int(row)) for row in first]
    owners = _named(owners)
    # Equal addresses may be written with and without leading zeros.
    order: dict[Owner, int] = {}
    for index in np.argsort(first):
        order.setdefault(owners[index], len(order))
    numbers = np.array([order[owner] for owner in owners], np.int64)
    return list(order), numbers[which]


def _named(owners: list[Owner]) -> list[Owner]:
    """The owners, with names in place of `<error>`.

    PresentMon writes that until it has found out what a process is called.
    """
    names: dict[int | None, str] = {
        owner.process_id: owner.process
        for owner in owners
        if owner.process_id is not None and not _is_unknown(owner.process)
    }
    return [
        dataclasses.replace(owner, process=names.get(owner.process_id, owner.process))
        if _is_unknown(owner.process)
        else owner
        for owner in owners
    ]


def _is_unknown(process: str) -> bool:
    return process.startswith("<") and process.endswith(">")


def _owner(columns: tuple[Column | None, ...], row: int) -> Owner:
    texts = [
        "" if column is None else column.vocabulary[column.values[row]]
        for column in columns
    ]
    name, number, address = texts
    process_id = parse_id(number)
    return Owner(name, process_id, parse_address(address) if address else None)
