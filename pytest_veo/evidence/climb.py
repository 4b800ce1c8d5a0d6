"""From objects up to what keeps them alive: the shortest chain to a root.

The search asks `gc.get_referrers` for a whole level at a time, in C, so it costs a few
passes over the heap and memory only for the objects on its way. Two things the
collector cannot tell are asked for separately: the locals of running frames (since
CPython 3.11 no referrer) and untracked containers (a dict of plain values).
"""

from __future__ import annotations

import dataclasses
import gc
import sys
import time
import types
from collections.abc import Iterable
from collections.abc import Sequence

from pytest_veo.evidence import objects
from pytest_veo.evidence import roots
from pytest_veo.evidence import untracked
from pytest_veo.evidence.objects import OWN_REFERENCES
from pytest_veo.evidence.roots import Landing
from pytest_veo.evidence.roots import Root


_BATCH = 32
_INSTANCES = 16
_WIDEST = 20_000
_TOP = -1


@dataclasses.dataclass(slots=True)
class Ascent:
    """A chain as objects, from the root down to the target.

    Short-lived: it keeps every object on it alive until it has been put into words.
    """

    landing: Landing
    nodes: list[object]
    extra: int = 0
    """References to the first node that no Python object accounts for."""


class Climber:
    """One search for the holders of a few objects.

    Args:
        targets: the objects to explain.
        hidden: containers of the caller, which hold the targets only while it looks.
        seconds: how long the search may take.
    """

    def __init__(
        self,
        targets: Sequence[object],
        hidden: Iterable[object] = (),
        seconds: float = 2.0,
    ) -> None:
        # Of the processor's time: on a busy machine a holder is found as well.
        self._deadline = time.thread_time() + seconds
        self._seconds = seconds
        self._nodes: list[object] = []
        self._places: dict[int, int] = {}
        self._below: list[list[int]] = []
        self._instances: dict[int, int] = {}
        self._up: dict[int, int] = {}
        self._landings: dict[int, Landing] = {}
        self._spare_up: dict[int, int] = {}
        self._spare_landings: dict[int, Landing] = {}
        self._modules = roots.module_namespaces()
        self._bookkeeping = roots.bookkeeping()
        self._frames = roots.running_frames()
        callers = {id(each): each for each in (targets, *hidden)}
        self._callers: list[object] = list(callers.values())
        del callers
        self._hidden = {id(each) for each in self._callers}
        self._hidden |= {id(self), id(vars(self)), id(self._nodes)}
        self._hidden.add(id(self._callers))
        self._targets = [self._place(target)[0] for target in targets]
        self._starts = set(self._targets)

    def climb(self) -> list[Ascent]:
        """One ascent for each target, in their order."""
        frontier = self._land(list(dict.fromkeys(self._targets)))
        while frontier and not self._is_over():
            frontier = self._land(self._rise(frontier))
        return [self._ascent(target) for target in self._targets]

    def _is_over(self) -> bool:
        return time.thread_time() > self._deadline or len(self._nodes) > _WIDEST

    def _place(self, obj: object) -> tuple[int, bool]:
        """The object's position, and whether it is new."""
        known = self._places.get(id(obj))
        if known is not None:
            return known, False
        self._places[id(obj)] = position = len(self._nodes)
        self._nodes.append(obj)
        self._below.append([])
        return position, True

    def _rise(self, frontier: list[int]) -> list[int]:
        """The objects directly above the frontier that were not known yet."""
        above: list[int] = []
        for start in range(0, len(frontier), _BATCH):
            if self._is_over():
                break
            above += self._referrers(frontier[start : start + _BATCH])
        return above

    def _referrers(self, positions: list[int]) -> list[int]:
        """The unknown objects that refer to these nodes."""
        nodes = [self._nodes[i] for i in positions]
        wanted = {id(node): i for node, i in zip(nodes, positions, strict=True)}
        classes = {
            id(node): i
            for node, i in zip(nodes, positions, strict=True)
            if objects.is_type(node)
        }
        new: list[int] = []
        mark = object()  # by which the tuple of arguments is known, a referrer too
        for referrer in gc.get_referrers(*nodes, mark):
            if referrer is nodes or _ends_with(referrer, mark):
                continue
            if not self._is_noise(referrer, classes):
                new += self._link(referrer, wanted)
        plain = {id(node) for node in nodes if not gc.is_tracked(node)}
        for referrer in untracked.holding(plain) if plain else ():
            new += self._link(referrer, wanted)
        return new

    def _link(self, referrer: object, wanted: dict[int, int]) -> list[int]:
        """Note whom the referrer holds; its position if it was unknown."""
        position, is_new = self._place(referrer)
        self._below[position] += [
            wanted[id(child)]
            for child in gc.get_referents(referrer)
            if id(child) in wanted
        ]
        for up in (self._up, self._spare_up):
            if position in up:
                self._settle(position, up)
        return [position] if is_new else []

    def _is_noise(self, referrer: object, classes: dict[int, int]) -> bool:
        if id(referrer) in self._hidden:
            return True
        cls = classes.get(id(type(referrer)))
        if cls is not None:
            self._instances[cls] = self._instances.get(cls, 0) + 1
            if self._instances[cls] > _INSTANCES:
                return True  # a class is held by all its instances: a few will do
        if type(referrer) is types.FrameType:
            return roots.owner_of_frame(referrer) == "veo"
        return False

    def _land(self, positions: list[int]) -> list[int]:
        """Settle what has reached a root; the rest goes on climbing."""
        landed = [(i, self._landing(i)) for i in positions]
        good = [(i, mark) for i, mark in landed if mark and not mark.is_last_resort]
        for i, best in sorted(good, key=self._preference):
            if i not in self._up:
                self._up[i] = _TOP
                self._landings[i] = best
                self._settle(i, self._up)
        for i, mark in landed:
            if mark is not None and mark.is_last_resort:
                self._spare_up.setdefault(i, _TOP)
                self._spare_landings.setdefault(i, mark)
                self._settle(i, self._spare_up)
        ends = {i for i, mark in landed if mark and mark.root is Root.BOOKKEEPING}
        return [i for i in positions if i not in ends and self._is_open(i)]

    def _preference(self, landed: tuple[int, Landing]) -> tuple[int, bool, int]:
        """Smaller is the better of two roots at the same distance.

        An object is best named by the module that defines its class: it is
        `logging.root`, not the logger of whoever asked for one.
        """
        position, mark = landed
        home = {
            objects.type_module(type(self._nodes[child]))
            for child in self._below[position]
        }
        return roots.rank(mark.root), mark.name not in home, len(mark.name)

    def _is_open(self, position: int) -> bool:
        """Whether a chain for something still unexplained may go through here."""
        if position in self._up:
            return False
        if position in self._starts:
            return True
        return any(child not in self._up for child in self._below[position])

    def _landing(self, position: int) -> Landing | None:
        node = self._nodes[position]
        known = self._bookkeeping.get(id(node))
        if known is not None:
            return Landing(Root.BOOKKEEPING, known, is_last_resort=True)
        if position in self._starts and objects.is_type(node):
            found = None  # a class is no explanation of itself
        else:
            found = roots.landing_of(node, self._modules)
        if found is None and id(node) in self._frames:
            found = self._frames[id(node)]
        return found

    def _settle(self, position: int, up: dict[int, int]) -> None:
        """Everything below a settled object is held by it."""
        waiting = [position]
        while waiting:
            above = waiting.pop(0)
            for child in self._below[above]:
                if child not in up:
                    up[child] = above
                    waiting.append(child)

    def _ascent(self, target: int) -> Ascent:
        for up, landings in (
            (self._up, self._landings),
            (self._spare_up, self._spare_landings),
        ):
            if target in up:
                return self._chain(target, up, landings)
        if self._is_over():
            text = f"not found within {self._seconds:g} s"
            return Ascent(Landing(Root.UNKNOWN, text), [self._nodes[target]])
        return self._native(target)

    def _native(self, target: int) -> Ascent:
        """The chain from the object that C code must be holding, if one stands out."""
        above: dict[int, list[int]] = {}
        for parent, children in enumerate(self._below):
            for child in children:
                above.setdefault(child, []).append(parent)
        extra = self._unaccounted(above)
        up = {target: _TOP}
        waiting = [target]
        while waiting:
            position = waiting.pop(0)
            if extra[position] > 0:
                chain = [position]
                while up[chain[-1]] != _TOP:
                    chain.append(up[chain[-1]])
                nodes = [self._nodes[i] for i in chain]
                return Ascent(Landing(Root.NATIVE, ""), nodes, extra[position])
            for parent in above.get(position, ()):
                if parent not in up:
                    up[parent] = position
                    waiting.append(parent)
        return Ascent(Landing(Root.NATIVE, ""), [self._nodes[target]])

    def _unaccounted(self, above: dict[int, list[int]]) -> list[int]:
        """References to each node beyond those of Python objects and of ours."""
        extra = [n - OWN_REFERENCES for n in map(sys.getrefcount, self._nodes)]
        for each in self._callers:
            for held in gc.get_referents(each):
                position = self._places.get(id(held))
                if position is not None:
                    extra[position] -= 1
        for i, instances in self._instances.items():
            extra[i] -= max(0, instances - _INSTANCES)
        return [n - len(above.get(i, ())) for i, n in enumerate(extra)]

    def _chain(
        self, target: int, up: dict[int, int], landings: dict[int, Landing]
    ) -> Ascent:
        positions = [target]
        while up[positions[-1]] != _TOP:
            positions.append(up[positions[-1]])
        nodes = [self._nodes[i] for i in reversed(positions)]
        return Ascent(landings[positions[-1]], nodes)


def _ends_with(referrer: object, mark: object) -> bool:
    return type(referrer) is tuple and len(referrer) > 0 and referrer[-1] is mark
