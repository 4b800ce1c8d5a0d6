"""Who still holds an object: the shortest chain from a root, in words."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from collections.abc import Sequence

from pytest_veo.evidence import chains
from pytest_veo.evidence import objects
from pytest_veo.evidence.chains import Step
from pytest_veo.evidence.climb import Climber
from pytest_veo.evidence.roots import Root


_INDEX = re.compile(r"\[[^\]]*\]")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """What keeps one object alive. Text only."""

    type_name: str
    """The type of the object that is held."""
    root: Root
    path: str
    """The chain as one expression: `shop.cache.SESSIONS['k'].parser`."""
    steps: tuple[Step, ...] = ()
    reason: str = ""
    """How it was concluded, when no Python object is at the end of the chain."""

    def lines(self) -> tuple[str, ...]:
        """One to four lines for people."""
        ends_with_type = self.path.endswith(f"-> {self.type_name}")
        first = self.path if ends_with_type else f"{self.path} -> {self.type_name}"
        first = first.removeprefix(" -> ")
        return (first, self.reason) if self.reason else (first,)


def find(
    leaked: Sequence[object],
    hidden: Iterable[object] = (),
    seconds: float = 2.0,
) -> tuple[Holder, ...]:
    """The holders of some objects, each chain once.

    Args:
        leaked: the objects. The sequence itself is not counted as a holder.
        hidden: more containers of the caller that hold them while it looks.
        seconds: how long to look; what takes longer is said to be not found.
    """
    ascents = Climber(leaked, [leaked, *hidden], seconds).climb()
    found: list[Holder] = []
    for obj, ascent in zip(leaked, ascents, strict=True):
        chain = chains.describe(ascent)
        holder = Holder(
            type_name=objects.type_name(type(obj)),
            root=chain.root,
            path=_path(chain),
            steps=chain.steps,
            reason=_reason(chain, ascent.extra),
        )
        if not any(_is_same_chain(holder, other) for other in found):
            found.append(holder)
    found.sort(key=lambda each: each.root in (Root.NATIVE, Root.UNKNOWN))
    return tuple(found)


def _is_same_chain(one: Holder, other: Holder) -> bool:
    """Whether one chain only goes on from the object of the other."""
    first, second = (_INDEX.sub("[]", each.path) for each in (one, other))
    if not first or not second:
        return first == second and one.type_name == other.type_name
    return first.startswith(second) or second.startswith(first)


def _path(chain: chains.Chain) -> str:
    if chain.root is Root.UNKNOWN:
        return ""
    return chain.path


def _reason(chain: chains.Chain, extra: int) -> str:
    if chain.root is Root.UNKNOWN:
        return f"holder {chain.root_name}"
    if chain.root is Root.PYTEST:
        return "pytest keeps it; nothing else does"
    if chain.root is Root.BOOKKEEPING:
        return "it is only listed there: it is still running or open"
    if chain.root is not Root.NATIVE:
        return ""
    if extra > 0:
        times = "once" if extra == 1 else f"{extra} times"
        return (
            f"no Python object holds it, yet it is referenced {times} more than Python "
            "accounts for: C or C++ code keeps it (an extension that does not release "
            "it, a callback registered in C, a C++ reference cycle)"
        )
    return "no Python object and no running function holds it: C or C++ code does"
