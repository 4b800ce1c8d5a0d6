from __future__ import annotations

import array
import asyncio
import collections
import concurrent.futures
import filecmp
import functools
import gc
import io
import itertools
import logging
import queue
import re
import struct
import sys
import threading
import types
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_veo.evidence.places import GrownPlace
from pytest_veo.evidence.places import Places
from pytest_veo.evidence.roots import Root


RUNS = 6
NUMBERS = itertools.count(1_000_000)


class Cache:
    """A bounded cache as libraries write them: the limit stands beside the table."""

    def __init__(self, **limit: int) -> None:
        self.__dict__.update(limit)
        self._table: dict[object, object] = {}

    def put(self, key: object, value: object) -> None:
        self._table[key] = value


class Service:
    """Not a cache: its `limit` limits something else."""

    def __init__(self) -> None:
        self.limit = 100_000
        self.sessions: dict[object, object] = {}


class Registry:
    seen: list[object] = []


class Slotted:
    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: list[object] = []


def closure_cache(maxsize: int) -> Callable[[int], int]:
    table: dict[int, int] = {}

    def compute(number: int) -> int:
        if len(table) < maxsize:
            table[number] = number
        return number

    return compute


@pytest.fixture
def shop() -> Iterator[Any]:
    """A user's module, empty."""
    module: Any = types.ModuleType("shop")
    sys.modules["shop"] = module
    yield module
    del sys.modules["shop"]


def grown_by(step: Callable[[], object], runs: int = RUNS) -> tuple[GrownPlace, ...]:
    step()
    gc.collect()
    census = Places.take()
    for _ in range(runs):
        step()
    gc.collect()
    return census.grown(runs)


def in_shop(grown: tuple[GrownPlace, ...]) -> list[GrownPlace]:
    return [place for place in grown if place.path.startswith("shop")]


def unbounded(shop: Any, name: str) -> Callable[[], object]:
    n = NUMBERS
    held: Any = {
        "LIST": [],
        "PLAIN": {"a": "b"},
        "TABLE": {},
        "NAMES": set(),
        "QUEUE": collections.deque(),
        "ORDERED": collections.OrderedDict(),
        "GROUPS": collections.defaultdict(list),
        "COUNTS": collections.Counter(),
        "SERVICE": Service(),
        "SLOTTED": Slotted(),
        "WAITING": queue.Queue(),
        "SIMPLE": queue.SimpleQueue(),
    }[name]
    setattr(shop, name, held)
    return {
        "LIST": lambda: held.append([next(n)]),
        "PLAIN": lambda: held.__setitem__(str(next(n)), "text"),
        "TABLE": lambda: held.__setitem__(next(n), [1]),
        "NAMES": lambda: held.add(str(next(n))),
        "QUEUE": lambda: held.append([1]),
        "ORDERED": lambda: held.__setitem__(next(n), [1]),
        "GROUPS": lambda: held["one"].append([1]),
        "COUNTS": lambda: held.update([next(n)]),
        "SERVICE": lambda: held.sessions.__setitem__(next(n), [1]),
        "SLOTTED": lambda: held.rows.append([1]),
        "WAITING": lambda: held.put([1]),
        "SIMPLE": lambda: held.put([1]),
    }[name]


@pytest.mark.parametrize(
    ("name", "kind", "path"),
    [
        ("LIST", "list", "shop.LIST"),
        ("PLAIN", "dict", "shop.PLAIN"),
        ("TABLE", "dict", "shop.TABLE"),
        ("NAMES", "set", "shop.NAMES"),
        ("QUEUE", "collections.deque", "shop.QUEUE"),
        ("ORDERED", "collections.OrderedDict", "shop.ORDERED"),
        ("GROUPS", "list", "shop.GROUPS['one']"),
        ("COUNTS", "collections.Counter", "shop.COUNTS"),
        ("SERVICE", "dict", "shop.SERVICE.sessions"),
        ("SLOTTED", "list", "shop.SLOTTED.rows"),
        ("WAITING", "collections.deque", "shop.WAITING.queue"),
        ("SIMPLE", "SimpleQueue", "shop.SIMPLE"),
    ],
)
def test_a_container_that_grows_without_limit_is_named(
    shop: Any, name: str, kind: str, path: str
) -> None:
    (place,) = in_shop(grown_by(unbounded(shop, name)))
    assert (place.path, place.kind) == (path, kind)
    assert place.entries_per_run == 1
    assert place.entries == RUNS + (2 if name == "PLAIN" else 1)
    assert place.ceiling_entries is None
    assert not place.is_bounded
    assert place.places_left is None
    assert place.is_certain
    assert (place.root, place.owner) == (Root.MODULE, "user")


@pytest.mark.parametrize(
    ("kind", "held"),
    [
        ("bytearray", bytearray(b"start")),
        ("array.array", array.array("b", b"start")),
    ],
)
def test_a_buffer_that_grows_is_counted_in_bytes(
    shop: Any, kind: str, held: Any
) -> None:
    shop.BUFFER = held
    (place,) = in_shop(grown_by(lambda: held.extend(b"0123456789")))
    assert (place.kind, place.path) == (kind, "shop.BUFFER")
    assert place.entries_per_run == 10


def test_a_bytes_stream_that_grows_is_named(shop: Any) -> None:
    shop.STREAM = io.BytesIO()
    places = in_shop(grown_by(lambda: shop.STREAM.write(b"x" * 4000)))
    assert [place.path for place in places] == ["shop.STREAM"]


def test_a_class_attribute_is_named_by_its_class() -> None:
    grown = grown_by(lambda: Registry.seen.append([1]))
    (place,) = [p for p in grown if "Registry" in p.path]
    assert place.path.endswith("test_places.Registry.seen")
    assert place.root in (Root.CLASS, Root.MODULE)
    Registry.seen.clear()


def bounded(shop: Any, name: str) -> Callable[[], object]:
    n = NUMBERS

    @functools.lru_cache(maxsize=100)
    def page(number: int) -> str:
        return "x" * 2000 + str(number)

    shop.page = page
    shop.compute = closure_cache(maxsize=100)
    shop._prices, shop._MAX_PRICES = {}, 100
    shop.CLOSED = Cache(maxsize=100)
    shop.ROOMY = Cache(_LRUCache__capacity=100)
    shop.RECENT = collections.deque(maxlen=100)
    shop.WAITING = queue.Queue(maxsize=100)
    steps: dict[str, Callable[[], object]] = {
        "lru_cache": lambda: page(next(n)),
        "closure": lambda: shop.compute(next(n)),
        "constant": lambda: shop._prices.__setitem__(next(n), [1]),
        "maxsize": lambda: shop.CLOSED.put(next(n), [1]),
        "mangled": lambda: shop.ROOMY.put(next(n), [1]),
        "deque": lambda: shop.RECENT.append([1]),
        "queue": lambda: shop.WAITING.put([1]),
        "re": lambda: re.compile(f"item-{next(n)}"),
        "struct": lambda: struct.pack(f"{next(n)}s", b""),
    }
    return steps[name]


@pytest.mark.parametrize(
    ("name", "where", "ceiling", "limit"),
    [
        ("lru_cache", "page (maxsize=100)", 100, "maxsize=100"),
        ("closure", "shop.compute closure variable table", 100, "maxsize=100"),
        ("constant", "shop._prices", 100, "MAX_PRICES=100"),
        ("maxsize", "shop.CLOSED._table", 100, "maxsize=100"),
        ("mangled", "shop.ROOMY._table", 100, "capacity=100"),
        ("deque", "shop.RECENT", 100, "maxlen=100"),
        ("queue", "shop.WAITING.queue", 100, "maxsize=100"),
        ("re", "re._cache", 512, "MAXCACHE=512"),
        ("struct", "_struct", 100, "at most 100 in struct"),
    ],
)
def test_a_container_with_a_limit_is_bounded(
    shop: Any, name: str, where: str, ceiling: int, limit: str
) -> None:
    re.purge()
    struct._clearcache()  # type: ignore[attr-defined]
    grown = grown_by(bounded(shop, name))
    (place,) = [p for p in grown if where in p.path and not p.path.endswith("_cache2")]
    assert place.ceiling_entries == ceiling
    assert place.bounded_by == limit
    assert place.entries_per_run == 1
    assert place.places_left == ceiling - place.entries


def test_filecmp_keeps_its_cache_small_and_is_known_for_it(tmp_path: Any) -> None:
    def compare() -> None:
        for name in ("a", "b"):
            (tmp_path / name).write_text(str(next(NUMBERS)))
        filecmp.cmp(tmp_path / "a", tmp_path / "b", shallow=False)
        filecmp._cache[next(NUMBERS)] = True  # type: ignore[attr-defined]

    filecmp.clear_cache()
    (place,) = [p for p in grown_by(compare) if p.path == "filecmp._cache"]
    assert place.bounded_by == "at most 100 in filecmp"
    filecmp.clear_cache()


PAGES: dict[int, list[int]] = {}
RECENT: list[list[int]] = []
JOBS: dict[int, list[int]] = {}
MOST_RECENT = 60


def page_of_code(number: int) -> None:
    if len(PAGES) >= 200:
        PAGES.clear()
    PAGES[number] = [number]


def recent_of_code(number: int) -> None:
    RECENT.append([number])
    while len(RECENT) > MOST_RECENT:
        RECENT.pop(0)


def job_of_code(number: int) -> int:
    JOBS[number] = [number]
    return len(JOBS) if number > 500 else 0


TIMERS: list[list[int]] = []
cancelled = 0
NAMES: dict[int, list[int]] = {}


def timer_of_code(number: int) -> None:
    if len(TIMERS) > 100 and cancelled / len(TIMERS) > 0.5:
        TIMERS.clear()
    TIMERS.append([number])


def name_of_code(number: int) -> None:
    if len(NAMES) >= 150 and number not in NAMES:
        NAMES.popitem()
    NAMES[number] = [number]


class Ring:
    def __init__(self) -> None:
        self.most = 80
        self.items: list[list[int]] = []

    def put(self, number: int) -> None:
        self.items.append([number])
        if len(self.items) > self.most:
            del self.items[0]


RING = Ring()


@pytest.mark.parametrize(
    ("step", "name", "limit"),
    [
        (page_of_code, "PAGES", "at most 200 in page_of_code"),
        (recent_of_code, "RECENT", "at most 60 in recent_of_code"),
        (RING.put, "RING.items", "at most 80 in Ring.put"),
        (name_of_code, "NAMES", "at most 150 in name_of_code"),
        (timer_of_code, "TIMERS", ""),
        (job_of_code, "JOBS", ""),
    ],
    ids=["literal", "constant", "attribute", "unknown", "one of two", "no limit"],
)
def test_a_limit_that_stands_in_code_is_read(
    step: Callable[[int], object], name: str, limit: str
) -> None:
    grown = grown_by(lambda: step(next(NUMBERS)))
    (place,) = [p for p in grown if p.path.endswith(f"test_places.{name}")]
    assert place.bounded_by == limit


def test_a_number_that_limits_something_else_is_no_bound(shop: Any) -> None:
    shop.MAX_WORKERS = 100_000
    shop.SERVICE = Service()
    (place,) = in_shop(
        grown_by(lambda: shop.SERVICE.sessions.update({next(NUMBERS): 1}))
    )
    assert place.bounded_by == ""


def test_a_limit_that_is_not_kept_is_no_bound(shop: Any) -> None:
    shop.CACHE = Cache(maxsize=3)
    (place,) = in_shop(grown_by(lambda: shop.CACHE.put(next(NUMBERS), [1])))
    assert place.ceiling_entries is None


def test_an_unlimited_lru_cache_says_so() -> None:
    @functools.cache
    def load(number: int) -> list[int]:
        return [number]

    (place,) = [p for p in grown_by(lambda: load(next(NUMBERS))) if "load" in p.path]
    assert place.path.startswith("functools.lru_cache of ")
    assert place.path.endswith("load (maxsize=None)")
    assert place.kind == "lru_cache"
    assert place.ceiling_entries is None
    assert place.entry_type == "list"


def test_the_threads_of_a_pool_that_fills_are_bounded(shop: Any) -> None:
    shop.POOL = concurrent.futures.ThreadPoolExecutor(max_workers=50)
    busy = threading.Event()

    def hold(started: threading.Event) -> None:
        started.set()
        busy.wait(30)

    def submit() -> None:
        started = threading.Event()
        shop.POOL.submit(hold, started)
        assert started.wait(30)

    try:
        grown = grown_by(submit)
    finally:
        busy.set()
        shop.POOL.shutdown()
    (threads,) = [p for p in in_shop(grown) if p.entry_type == "threading.Thread"]
    assert threads.path == "shop.POOL._threads"
    assert threads.bounded_by == "max_workers=50"
    (listed,) = [p for p in grown if p.path == "threading._active"]
    assert listed.is_bookkeeping


def test_the_jobs_that_wait_for_a_pool_have_no_limit(shop: Any) -> None:
    shop.POOL = concurrent.futures.ThreadPoolExecutor(max_workers=100)
    busy = threading.Event()
    for _ in range(100):
        shop.POOL.submit(busy.wait, 30)
    try:
        grown = grown_by(lambda: shop.POOL.submit(str, next(NUMBERS)))
    finally:
        busy.set()
        shop.POOL.shutdown()
    (jobs,) = [p for p in in_shop(grown) if p.path == "shop.POOL._work_queue"]
    assert jobs.ceiling_entries is None


def test_timers_far_ahead_have_no_limit(shop: Any) -> None:
    shop.LOOP = asyncio.new_event_loop()
    grown = grown_by(lambda: shop.LOOP.call_later(3600, str, next(NUMBERS)))
    shop.LOOP.close()
    (timers,) = [p for p in in_shop(grown) if p.path == "shop.LOOP._scheduled"]
    assert timers.ceiling_entries is None


def test_loggers_made_for_every_request_are_named() -> None:
    grown = grown_by(lambda: logging.getLogger(f"request-{next(NUMBERS)}"))
    paths = [p.path for p in grown if p.entry_type == "logging.Logger"]
    assert any(path.endswith(".loggerDict") for path in paths), paths


def test_growth_in_few_runs_is_no_growth_of_the_test(shop: Any) -> None:
    shop.SEEN = []
    first = iter([True, True])
    assert not in_shop(
        grown_by(lambda: shop.SEEN.append([1]) if next(first, False) else None)
    )


def test_a_container_that_came_in_between_is_not_compared(shop: Any) -> None:
    shop.ROUNDS = []
    grown = grown_by(lambda: shop.ROUNDS.append([1, 2, 3]))
    assert [p.path for p in in_shop(grown)] == ["shop.ROUNDS"]


def test_an_address_taken_by_another_list_is_not_certain(shop: Any) -> None:
    shop.ROWS = [object(), object()]
    census = Places.take()
    shop.ROWS[:] = [object() for _ in range(20)]
    (place,) = in_shop(census.grown(RUNS))
    assert not place.is_certain


def test_nothing_grows_in_a_test_that_keeps_nothing(shop: Any) -> None:
    assert not in_shop(grown_by(lambda: [[1]] * 100))


def test_a_census_keeps_nothing_alive(shop: Any) -> None:
    class Held(dict[str, int]):
        pass

    import weakref

    held = Held(a=1)
    gone = weakref.ref(held)
    census = Places.take()
    del held
    assert gone() is None
    assert census.grown(1) is not None


class Hostile(dict[object, object]):
    """Any look at it through its own methods is an error."""

    def _refuse(self, *args: object) -> Any:
        raise AssertionError("code of the user ran")

    def grow(self) -> None:
        dict.__setitem__(self, next(NUMBERS), self)

    __len__ = __iter__ = __repr__ = __hash__ = __eq__ = _refuse  # type: ignore[assignment]
    __bool__ = __getattribute__ = __getitem__ = __sizeof__ = _refuse
    items = keys = values = _refuse
    __class__ = property(_refuse)


class HostileMeta(type):
    def _refuse(cls, *args: object) -> Any:
        raise AssertionError("code of the user ran")

    __hash__ = __eq__ = __instancecheck__ = __subclasscheck__ = _refuse


class HostileKind(metaclass=HostileMeta):
    def __init__(self) -> None:
        self.rows: list[object] = []


def test_no_code_of_the_user_runs(shop: Any) -> None:
    shop.HOSTILE, shop.KIND = Hostile(), HostileKind()

    def step() -> None:
        Hostile.__dict__["grow"](shop.HOSTILE)
        shop.KIND.rows.append(Hostile())

    places = in_shop(grown_by(step))
    assert {p.path for p in places} == {"shop.HOSTILE", "shop.KIND.rows"}


def test_bounded_places_explain_their_part_of_the_growth(shop: Any) -> None:
    @functools.lru_cache(maxsize=1000)
    def page(number: int) -> list[str]:
        return [str(number + i) for i in range(20)]

    shop.page = page
    page(next(NUMBERS))
    gc.collect()
    census = Places.take()
    numbers = [next(NUMBERS) * 100 for _ in range(RUNS)]
    before = sys.getallocatedblocks()
    for number in numbers:
        page(number)
    measured = (sys.getallocatedblocks() - before) / RUNS
    (place,) = [p for p in census.grown(RUNS) if "page" in p.path]
    assert place.weight_per_run.blocks == pytest.approx(measured, rel=0.2)


def test_large_entries_of_an_unbounded_place_are_weighed(shop: Any) -> None:
    shop.KEPT = []
    (place,) = in_shop(grown_by(lambda: shop.KEPT.append([bytes([1]) * 1000])))
    assert not place.is_bounded
    assert place.held_large_bytes >= 1000


def test_an_entry_in_two_caches_is_weighed_once(shop: Any) -> None:
    shop.A, shop.B = Cache(maxsize=100), Cache(maxsize=100)

    def step() -> None:
        value = [bytes([1]) * 2000, next(NUMBERS)]
        shop.A.put(value[1], value)
        shop.B.put(value[1], value)

    weights = [p.held_large_bytes > 1900 for p in in_shop(grown_by(step))]
    assert sorted(weights) == [False, True]


def test_containers_that_other_threads_change_meanwhile_do_no_harm(shop: Any) -> None:
    shop.TABLE, shop.KEPT = {}, []
    stop = threading.Event()

    def churn() -> None:
        while not stop.wait(0.0005):
            for number in itertools.islice(NUMBERS, 50):
                shop.TABLE[number] = [number]
                shop.TABLE.pop(number - 40, None)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        grown = grown_by(lambda: shop.KEPT.append([shop.TABLE]))
        assert "shop.KEPT" in [place.path for place in grown]
    finally:
        stop.set()
        thread.join(30)
