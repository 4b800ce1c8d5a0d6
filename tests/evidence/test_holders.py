from __future__ import annotations

import asyncio
import atexit
import contextvars
import ctypes
import functools
import gc
import sys
import threading
import traceback
import types
import weakref
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_veo.evidence import holders
from pytest_veo.evidence import newborn
from pytest_veo.evidence.holders import Holder
from pytest_veo.evidence.roots import Root


class Session:
    """What leaks."""

    def close(self) -> None: ...


class Slotted:
    __slots__ = ("session",)


class Catalogue:
    sessions: list[Session] = []


@pytest.fixture
def shop() -> Iterator[Any]:
    """A user's module, empty."""
    module: Any = types.ModuleType("shop")
    sys.modules["shop"] = module
    yield module
    del sys.modules["shop"]
    Catalogue.sessions.clear()


def holder_of(keep: Callable[[], object]) -> Holder:
    """The holder of the only Session there is once `keep` has made one."""
    gc.collect()
    nursery = newborn.Nursery()
    nursery.open()
    keep()
    found = [each for each in nursery.close() if type(each) is Session]
    (holder,) = holders.find(found)
    return holder


def in_closure(shop: Any) -> None:
    session = Session()

    def hook() -> Session:
        return session

    shop.HOOK = hook


def in_generator(shop: Any) -> None:
    def rows() -> Iterator[int]:
        session = Session()
        yield 1
        session.close()

    shop.ROWS = rows()
    next(shop.ROWS)


def in_lru_cache(shop: Any) -> None:
    @functools.cache
    def load(session: Session) -> int:
        return 1

    shop.load = load
    load(Session())


def in_frame_of_exception(shop: Any) -> None:
    def fail() -> None:
        session = Session()
        raise ValueError(id(session))

    try:
        fail()
    except ValueError as error:
        shop.ERRORS = [error]


def in_task(shop: Any) -> None:
    async def wait(reply: asyncio.Future[None]) -> None:
        session = Session()
        await reply
        session.close()

    async def start() -> None:
        reply = shop.LOOP.create_future()
        shop.TASKS = [asyncio.ensure_future(wait(reply))]
        await asyncio.sleep(0)

    shop.LOOP = asyncio.new_event_loop()
    shop.LOOP.run_until_complete(start())


def in_weakref_callback(shop: Any) -> None:
    session = Session()

    def gone(_: object, held: Session = session) -> None: ...

    shop.REF = weakref.ref(Slotted, gone)


def in_slot(shop: Any) -> None:
    shop.SLOTTED = Slotted()
    shop.SLOTTED.session = Session()


def in_thread_local(shop: Any) -> None:
    shop.LOCAL = threading.local()
    shop.LOCAL.session = Session()


def in_finalizer(shop: Any) -> None:
    shop.anchor = Slotted
    weakref.finalize(shop.anchor, Session().close)


def set_in(shop: Any, name: str, value: object) -> None:
    setattr(shop, name, value)


CASES: list[tuple[str, Callable[[Any], object], Root, str]] = [
    ("global", lambda m: set_in(m, "S", Session()), Root.MODULE, "shop.S"),
    (
        "dict",
        lambda m: set_in(m, "TABLE", {"k": [Session()]}),
        Root.MODULE,
        "shop.TABLE['k'][0]",
    ),
    ("set", lambda m: set_in(m, "ALL", {Session()}), Root.MODULE, "shop.ALL{...}"),
    (
        "partial",
        lambda m: set_in(m, "LATER", functools.partial(print, Session())),
        Root.MODULE,
        "shop.LATER.args[0]",
    ),
    (
        "bound method",
        lambda m: set_in(m, "ON_EXIT", Session().close),
        Root.MODULE,
        "shop.ON_EXIT.__self__",
    ),
    ("closure", in_closure, Root.MODULE, "shop.HOOK closure variable session"),
    ("generator", in_generator, Root.MODULE, "shop.ROWS local variable session"),
    ("lru_cache", in_lru_cache, Root.MODULE, "shop.load (lru_cache, in a key)[0]"),
    ("slot", in_slot, Root.MODULE, "shop.SLOTTED.session"),
    (
        "exception",
        in_frame_of_exception,
        Root.MODULE,
        "shop.ERRORS[0].__traceback__.tb_next.tb_frame local variable session",
    ),
    (
        "class attribute",
        lambda m: Catalogue.sessions.append(Session()),
        Root.MODULE,
        "Catalogue.sessions[0]",
    ),
    (
        "weakref callback",
        in_weakref_callback,
        Root.MODULE,
        "shop.REF.__callback__.__defaults__[0]",
    ),
]


@pytest.mark.parametrize(
    ("keep", "root", "path"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_the_chain_to_the_holder_is_named(
    shop: Any, keep: Callable[[Any], object], root: Root, path: str
) -> None:
    holder = holder_of(lambda: keep(shop))
    assert holder.path.endswith(path)
    assert holder.root in (root, Root.CLASS)
    assert holder.type_name.endswith("test_holders.Session")
    assert holder.reason == ""


@pytest.mark.parametrize(
    ("keep", "start", "part"),
    [
        (in_task, "shop.", "local variable session"),
        (in_thread_local, "shop.LOCAL", "shop.LOCAL.session"),
        (in_finalizer, "weakref.finalize", "__self__"),
    ],
    ids=["asyncio task", "thread local", "finalizer"],
)
def test_the_chain_goes_through_the_runtime(
    shop: Any, keep: Callable[[Any], object], start: str, part: str
) -> None:
    holder = holder_of(lambda: keep(shop))
    assert holder.path.startswith(start)
    assert part in holder.path
    for task in vars(shop).pop("TASKS", ()):
        task.cancel()
        shop.LOOP.run_until_complete(asyncio.gather(task, return_exceptions=True))
    if hasattr(shop, "LOOP"):
        shop.LOOP.close()


@pytest.fixture(scope="module")
def shelf() -> Catalogue:
    return Catalogue()


def test_a_fixture_that_is_wider_than_a_test_is_a_holder(shelf: Catalogue) -> None:
    holder = holder_of(lambda: vars(shelf).update(kept=Session()))
    assert holder.root is Root.FIXTURE
    assert holder.path == f"fixture shelf (module) -> {__name__}.Catalogue.kept"


def test_a_context_variable_is_a_last_resort(shop: Any) -> None:
    variable: contextvars.ContextVar[Any] = contextvars.ContextVar("session")
    token: list[Any] = []
    holder = holder_of(lambda: token.append(variable.set(Session())))
    assert holder.path == "contextvars.Context (context variable session)"
    variable.reset(token[0])


def test_a_running_thread_holds_its_locals() -> None:
    ready, done = threading.Event(), threading.Event()

    def work() -> None:
        session = Session()
        ready.set()
        done.wait(30)
        session.close()

    def start() -> None:
        threading.Thread(target=work, daemon=True).start()
        assert ready.wait(30)

    holder = holder_of(start)
    done.set()
    assert holder.root is Root.FRAME
    assert holder.path.startswith("local variable session of ")
    assert "work" in holder.path
    assert "test_holders.py" in holder.path


def test_looking_at_frames_leaves_no_copy_of_their_locals() -> None:
    class Held:
        pass

    ready, drop, dropped, done = (threading.Event() for _ in range(4))
    seen: list[weakref.ref[Held]] = []

    def work() -> None:
        held = Held()
        seen.append(weakref.ref(held))
        ready.set()
        drop.wait(30)
        del held
        dropped.set()
        done.wait(30)

    threading.Thread(target=work, daemon=True).start()
    assert ready.wait(30)
    (holder,) = holders.find([[]])
    assert holder is not None
    drop.set()
    assert dropped.wait(30)
    assert seen[0]() is None
    done.set()


def test_an_object_that_only_c_code_holds_says_so(shop: Any) -> None:
    def forget() -> None:
        session = Session()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session))

    holder = holder_of(forget)
    assert holder.root is Root.NATIVE
    assert holder.path == ""
    assert holder.reason.startswith(
        "no Python object holds it, yet it is referenced once more than Python "
        "accounts for: C or C++ code keeps it (an extension that does not release it"
    )


def test_an_atexit_callback_is_held_by_c_code() -> None:
    holder = holder_of(lambda: atexit.register(Session().close))
    assert holder.root is Root.NATIVE
    assert holder.path == "a method.__self__"


def test_what_is_not_found_in_time_is_said(shop: Any) -> None:
    shop.SESSION = Session()
    (holder,) = holders.find([shop.SESSION], seconds=-1)
    assert holder.root is Root.UNKNOWN
    assert holder.reason == "holder not found within -1 s"


def test_the_callers_own_lists_are_no_holders(shop: Any) -> None:
    shop.S = [Session()]
    mine = list(shop.S)
    also = [mine, {"x": mine}]
    (holder,) = holders.find(mine, [also, also[1]])
    assert holder.path == "shop.S[0]"


def test_chains_that_go_through_one_another_are_told_once(shop: Any) -> None:
    shop.TABLE = {"a": [Session()]}
    found = holders.find([shop.TABLE["a"][0], shop.TABLE["a"]])
    assert [each.path for each in found] == ["shop.TABLE['a'][0]"]


def test_a_kept_error_is_not_blamed_on_this_search() -> None:
    """The search must not appear in the tracebacks it walks."""
    try:
        raise ValueError("kept")
    except ValueError as error:
        stack = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__))
        holders.find([error])
        after = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__))
    assert stack == after


def test_the_search_itself_leaves_no_garbage(shop: Any) -> None:
    shop.S = Session()
    gc.collect()
    gc.disable()
    try:
        holders.find([shop.S])
        assert gc.collect() == 0
    finally:
        gc.enable()
