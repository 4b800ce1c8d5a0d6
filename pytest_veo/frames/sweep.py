"""One budget over a grid of parameters, told in one table."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from pytest_veo.errors import BadSetting
from pytest_veo.frames.recorder import FrameRecorder
from pytest_veo.frames.stats import FrameStats
from pytest_veo.frames.verdict import Outcome


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination of the parameters, and its series."""

    parameters: tuple[tuple[str, Any], ...]
    frames: FrameRecorder

    def __getitem__(self, parameter: str) -> Any:
        """This cell's value of a parameter."""
        return dict(self.parameters)[parameter]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A cell as the table shows it."""

    parameters: tuple[tuple[str, Any], ...]
    frames: int
    drop_rate: float | None
    """The highest among the kinds of drop that the series tells of."""
    p99_ms: float | None
    order_error: int | None
    outcome: Outcome | None
    """None where no budget was given."""


class Sweep:
    """The cells of a grid; iterate over it, run each cell into its `frames`.

    Args:
        grid: the values of every parameter.
        make: makes the recorder of a cell from its name.
    """

    def __init__(
        self,
        grid: Mapping[str, Sequence[Any]],
        make: Callable[[str], FrameRecorder],
    ) -> None:
        empty = [name for name, values in grid.items() if len(values) == 0]
        if not grid or empty:
            lack = f"{empty[0]} has no value" if empty else "no parameter is given"
            raise BadSetting(f"a sweep needs parameters with values: {lack}")
        self.cells = tuple(
            _cell(tuple(zip(grid, values, strict=True)), make)
            for values in itertools.product(*grid.values())
        )

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)


def row_of(
    parameters: tuple[tuple[str, Any], ...], stats: FrameStats, outcome: Outcome | None
) -> Row:
    """What the table says of a cell."""
    return Row(
        parameters=parameters,
        frames=stats.frames,
        drop_rate=max((drops.rate for drops in stats.drops), default=None),
        p99_ms=None if stats.spread is None else stats.spread.p99_ns / 1e6,
        order_error=None if stats.order is None else stats.order.max_error_frames,
        outcome=outcome,
    )


def draw_table(rows: Sequence[Row]) -> str:
    """The table as text, one line a cell; `-` where a series cannot tell."""
    parameters = [name for name, _ in rows[0].parameters] if rows else []
    heads = [*parameters, "frames", "dropped", "p99 ms", "order", "verdict"]
    lines = [heads, *(_texts(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if i < len(heads) - 1 else text
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def _cell(
    parameters: tuple[tuple[str, Any], ...], make: Callable[[str], FrameRecorder]
) -> Cell:
    name = ", ".join(f"{key}={value}" for key, value in parameters)
    return Cell(parameters=parameters, frames=make(name))


def _texts(row: Row) -> list[str]:
    return [
        *(str(value) for _, value in row.parameters),
        str(row.frames),
        "-" if row.drop_rate is None else f"{row.drop_rate:.2%}",
        "-" if row.p99_ms is None else f"{row.p99_ms:.4g}",
        "-" if row.order_error is None else str(row.order_error),
        "-" if row.outcome is None else str(row.outcome),
    ]
