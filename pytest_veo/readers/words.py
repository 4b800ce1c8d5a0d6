"""Text columns of few different values: names of processes, swapchains, modes.

A column of ten million rows names a handful of things. Each value is kept once;
the rows keep its number.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field

import numpy as np
import numpy.typing as npt

from pytest_veo.readers.numbers import LOWER_BYTES
from pytest_veo.readers.numbers import Positions
from pytest_veo.readers.numbers import words_of


Codes = npt.NDArray[np.int32]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_FEW = 8
"""Values looked for one by one before the rest is sorted."""
_LONGEST = 1024
"""Bytes of a cell that are told apart; real names are far shorter."""


@dataclass(slots=True)
class Vocabulary:
    """The different values of one column, in order of appearance."""

    most: int = 65536
    values: list[str] = field(default_factory=list)
    _codes: dict[int, int] = field(default_factory=dict)

    def encode(
        self, raw: npt.NDArray[np.uint8], start: Positions, end: Positions
    ) -> Codes:
        """The number of each cell's value; new values are added.

        Raises:
            OverflowError: more different values than a column of names has.
        """
        if _all_same(raw, start, end):
            key = int(_keys(raw, start[:1], end[:1])[0])
            return np.full(
                len(start), self._code(key, raw[start[0] : end[0]]), np.int32
            )
        keys = _keys(raw, start, end)
        codes = np.full(len(keys), -1, np.int32)
        todo = np.arange(len(keys))
        for _ in range(_FEW):
            if not len(todo):
                return codes
            row = int(todo[0])
            same = keys[todo] == keys[row]
            codes[todo[same]] = self._code(int(keys[row]), raw[start[row] : end[row]])
            todo = todo[~same]
        found, first, which = np.unique(
            keys[todo], return_index=True, return_inverse=True
        )
        rows = todo[first]
        new = [
            self._code(int(key), raw[start[row] : end[row]])
            for key, row in zip(found, rows, strict=True)
        ]
        codes[todo] = np.array(new, np.int32)[which]
        return codes

    def _code(self, key: int, cell: npt.NDArray[np.uint8]) -> int:
        code = self._codes.get(key)
        return self._add(key, cell.tobytes()) if code is None else code

    def _add(self, key: int, cell: bytes) -> int:
        if len(self.values) >= self.most:
            raise OverflowError(f"more than {self.most} different values")
        try:
            text = cell.decode("utf-8")
        except UnicodeDecodeError:
            # Older Windows tools write names in the local code page.
            text = cell.decode("latin-1")
        self._codes[key] = len(self.values)
        self.values.append(text)
        return len(self.values) - 1


def _all_same(raw: npt.NDArray[np.uint8], start: Positions, end: Positions) -> bool:
    """Whether every cell has the text of the first: one program in the capture."""
    if not len(start):
        return False
    length = int(end[0] - start[0])
    if not 8 <= length <= _LONGEST or not bool((end - start == length).all()):
        return False
    words = words_of(raw)
    # The last word overlaps the one before, so that no byte is left out.
    steps = [*range(0, length - 8, 8), length - 8]
    return all(
        bool((found == found[0]).all())
        for step in steps
        for found in [words[start + step]]
    )


def _keys(
    raw: npt.NDArray[np.uint8], start: Positions, end: Positions
) -> npt.NDArray[np.uint64]:
    """A 64-bit key of each cell's bytes: equal cells have equal keys.

    Up to eight bytes the key is the text itself mixed with its length; beyond, two
    different names share a key with a chance of 2**-64.
    """
    words = words_of(raw)
    length = np.minimum(end - start, _LONGEST)
    key = length.astype(np.uint64) * _MIX
    for step in range(0, int(length.max(initial=0)), 8):
        at = np.minimum(start + step, len(words) - 1)
        word = words[at] & LOWER_BYTES[np.clip(length - step, 0, 8)]
        key ^= word
        key *= _MIX
        key ^= key >> np.uint64(29)
    return np.asarray(key, np.uint64)
