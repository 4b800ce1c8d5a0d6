"""Named leak patterns, each with one way out.

A hint is given only when its evidence is there; two at most, the most specific first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from pytest_veo.evidence.collect import Evidence
    from pytest_veo.evidence.places import GrownPlace


_MOST = 2
_MANY_BLOCKS = 16
_SMALL_BYTES = 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Pattern:
    """A way to leak that has a name."""

    name: str
    applies: Callable[[Evidence], bool]
    way_out: str


def _paths(evidence: Evidence) -> list[str]:
    return [
        *(holder.path for holder in evidence.holders),
        *(place.path for place in _user_places(evidence)),
    ]


def _user_places(evidence: Evidence) -> list[GrownPlace]:
    return [
        place
        for place in evidence.places
        if place.is_certain and not place.is_bookkeeping and not place.is_bounded
    ]


def _any_path(*parts: str) -> Callable[[Evidence], bool]:
    return lambda evidence: any(p in path for path in _paths(evidence) for p in parts)


def _any_type(*names: str) -> Callable[[Evidence], bool]:
    def applies(evidence: Evidence) -> bool:
        return any(born.type_name.endswith(names) for born in evidence.born)

    return applies


def _created(kind: str) -> Callable[[Evidence], bool]:
    return lambda evidence: any(each.kind == kind for each in evidence.creations)


def _unlimited_cache(evidence: Evidence) -> bool:
    return any(
        place.kind == "lru_cache" and not place.is_bounded for place in evidence.places
    )


def _cache_on_method(evidence: Evidence) -> bool:
    def is_method(path: str) -> bool:
        name = path.removeprefix("functools.lru_cache of ").partition(" ")[0]
        owner = name.split(".")[-2:-1]
        return bool(owner) and owner[0][:1].isupper()

    if not any("lru_cache, in a key" in holder.path for holder in evidence.holders):
        return False
    return any(p.kind == "lru_cache" and is_method(p.path) for p in evidence.places)


def _kept_graph(evidence: Evidence) -> bool:
    return any(holder.form.endswith("with a graph") for holder in evidence.holders)


def _held_by_c(evidence: Evidence) -> bool:
    roots = [holder.root for holder in evidence.holders]
    return bool(roots) and all(root == "native" for root in roots)


def _no_python(evidence: Evidence) -> bool:
    is_empty = not evidence.holders and not _user_places(evidence)
    return is_empty and not evidence.creations and not evidence.native_sites


def _small_blocks(evidence: Evidence) -> bool:
    """Whether a line leaves many of the smallest blocks on a device."""
    on_device = [(s.blocks_per_run, s.bytes_per_run) for s in evidence.device_sites]
    on_device += [
        (s.blocks_per_run, s.bytes_per_run) for s in evidence.sites if s.memory
    ]
    return any(
        blocks >= _MANY_BLOCKS and size_bytes <= blocks * _SMALL_BYTES
        for blocks, size_bytes in on_device
    )


def _growing(*kinds: str) -> Callable[[Evidence], bool]:
    return lambda evidence: any(p.kind in kinds for p in _user_places(evidence))


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "functools cache on a method",
        _cache_on_method,
        "the cache keeps every `self`: cache on the instance "
        "(functools.cached_property), or pass the values it needs instead of `self`",
    ),
    Pattern(
        "cache without a limit",
        _unlimited_cache,
        "give functools.lru_cache a maxsize, or call cache_clear() in a fixture",
    ),
    Pattern(
        "exception that keeps frames",
        lambda e: _any_type("traceback")(e) and not _held_by_c(e),
        "a kept exception keeps every local of its frames: keep str(error), or call "
        "error.with_traceback(None) before you keep it",
    ),
    Pattern(
        "graph kept by a tensor",
        _kept_graph,
        "a tensor with a graph keeps all that made it: add up loss.item() or "
        "loss.detach()",
    ),
    Pattern(
        "hook or closure over an object",
        _any_path("_forward_hooks", "_backward_hooks", "closure variable", "_hooks"),
        "keep the handle and call handle.remove(), or close over weakref.ref(object)",
    ),
    Pattern(
        "plan cache",
        _any_path("plan_cache", "PlanCache", "_plan"),
        "limit it or clear it after the test, e.g. "
        "cupy.fft.config.get_plan_cache().set_size(n)",
    ),
    Pattern(
        "graph with its own memory pool",
        lambda e: any(s.pool for s in e.device_sites) or _any_type("CUDAGraph")(e),
        "a captured graph keeps its private pool: delete the graph and its outputs",
    ),
    Pattern(
        "pinned host buffers",
        _any_type("PinnedMemory", "PinnedMemoryPointer", "MappedNDArray"),
        "make pinned buffers once and use them again",
    ),
    Pattern(
        "small host-device copies",
        _small_blocks,
        "each takes 512 bytes of the device at least: gather them on the host and copy "
        "once",
    ),
    Pattern(
        "raw device memory that nobody frees",
        lambda e: any(site.memory.startswith("cupy.runtime") for site in e.sites),
        "call cupy.cuda.runtime.free(address), or use cupy.cuda.alloc, whose memory "
        "goes back by itself",
    ),
    Pattern(
        "logging handler that stays",
        _any_path(".handlers["),
        "call logger.removeHandler(handler) and handler.close() when the work is done",
    ),
    Pattern(
        "logger for every request",
        lambda e: any(p.path.endswith(".loggerDict") for p in _user_places(e)),
        "loggers live for ever: use one logger and put the name into the message or "
        "`extra`",
    ),
    Pattern(
        "thread that nobody ends",
        _created("thread"),
        "tell the thread to stop and join() it, or shut its executor down (`with`)",
    ),
    Pattern(
        "child process that nobody ends",
        _created("process"),
        "terminate() and wait() for it, or use `with subprocess.Popen(...)`",
    ),
    Pattern(
        "asyncio task that never ends",
        _created("task"),
        "cancel the task and await it, or put asyncio.timeout() around its wait",
    ),
    Pattern(
        "session or connection that nobody closes",
        _any_type("Session", "Connection", "InferenceSession"),
        "close it (`with`, or a fixture that yields it), or make it once for all tests",
    ),
    Pattern(
        "descriptor that nobody closes",
        _created("descriptor"),
        "close it: `with open(...)`, or contextlib.closing",
    ),
    Pattern(
        "weak references to the dead",
        lambda e: any(p.entry_type.startswith("weakref.") for p in _user_places(e)),
        "use weakref.WeakSet or a weakref callback that takes the entry out",
    ),
    Pattern(
        "mapping that only grows",
        _growing("dict", "collections.OrderedDict", "collections.defaultdict"),
        "take entries out when they are done, bound it "
        "(functools.lru_cache(maxsize=n)), or use weakref.WeakValueDictionary",
    ),
    Pattern(
        "list that only grows",
        _growing("list", "set", "collections.deque"),
        "clear it in a fixture, or bound it: collections.deque(maxlen=n)",
    ),
    Pattern(
        "object held by C code",
        _held_by_c,
        "look for the extension at the allocating line: a newer version may release it",
    ),
    Pattern(
        "memory of C code",
        lambda evidence: bool(evidence.native_sites),
        "the C functions above did not free it: try a newer version, or report it",
    ),
    Pattern(
        "memory of C code",
        _no_python,
        "pip install 'pytest-veo[native]' to name it, where it is the host's; compare "
        "nvml.process with the allocators' figures, where it is a device's",
    ),
)


def hints(evidence: Evidence) -> tuple[str, ...]:
    """At most two hints, as `name: way out`."""
    found = [p for p in PATTERNS if p.applies(evidence)]
    return tuple(f"{each.name}: {each.way_out}" for each in found[:_MOST])
