from __future__ import annotations

import asyncio
import collections
import dataclasses
import functools
import gc
import itertools
import json
import linecache
import logging
import os
import socket
import subprocess
import sys
import threading
import tracemalloc
import types
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_veo import tracemalloc_ext
from pytest_veo.errors import MissingDependency
from pytest_veo.evidence import native
from pytest_veo.evidence import text
from pytest_veo.evidence.collect import Collector
from pytest_veo.evidence.collect import Evidence
from pytest_veo.evidence.places import GrownPlace
from pytest_veo.evidence.roots import Root
from tests.evidence import stub_cupy


RUNS = 4
KEPT: list[Any] = []
ONE = bytes([1])


class Parser:
    def __init__(self) -> None:
        self.table = [ONE * 1000]

    @functools.cache  # noqa: B019
    def width(self, indent: int) -> int:
        return indent


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    for each in KEPT:
        for way_out in ("close", "kill", "wait"):
            call = getattr(each, way_out, None)
            if callable(call):
                call()
    KEPT.clear()
    Parser.width.cache_clear()


def evidence_of(
    step: Callable[[], object], level: Any = "full", domains: Any = None
) -> Evidence:
    step()
    gc.collect()
    collector = Collector(level, domains)
    collector.begin()
    for _ in range(RUNS):
        step()
    return collector.end(RUNS)


def keep_parser() -> None:
    Parser().width(4)


def test_a_cache_on_a_method_is_explained_in_full() -> None:
    evidence = evidence_of(keep_parser)
    assert evidence.sites[0].source == "self.table = [ONE * 1000]"
    assert "Parser.width (lru_cache, in a key)[0]" in evidence.holders[0].path
    assert evidence.hints[0].startswith("functools cache on a method: ")
    (cache,) = [place for place in evidence.places if place.kind == "lru_cache"]
    assert cache.entries_per_run == 1


def test_the_lines_for_people_come_in_the_order_of_use() -> None:
    found = text.lines(evidence_of(keep_parser))
    assert len(found) <= 12
    words = [line.partition(" ")[0] for line in found if not line.startswith(" ")]
    assert (words[:2], words[-1]) == (["allocated", "held"], "hint")
    assert set(words[2:-1]) <= {"also"}
    assert found[0].startswith("allocated  tests/evidence/test_collect.py:")
    assert "self.table = [ONE * 1000]" in found[0]


def test_light_evidence_traces_nothing_and_still_finds_the_holder() -> None:
    evidence = evidence_of(keep_parser, "light")
    assert evidence.sites == ()
    assert "Parser.width" in evidence.holders[0].path
    assert not tracemalloc.is_tracing()


def test_a_test_that_keeps_nothing_has_no_evidence() -> None:
    evidence = evidence_of(lambda: [Parser() for _ in range(100)])
    assert evidence.sites == ()
    assert evidence.holders == ()
    assert evidence.creations == ()
    assert [p.path for p in evidence.places if not p.is_bookkeeping] == []


def test_evidence_is_plain_enough_for_json() -> None:
    evidence = evidence_of(keep_parser)
    loaded = json.loads(json.dumps(dataclasses.asdict(evidence)))
    assert loaded["level"] == "full"
    assert loaded["holders"][0]["root"] in ("module", "class")


def test_evidence_keeps_nothing_alive() -> None:
    alive = itertools.count()
    counts = collections.Counter[int]()

    class Held:
        def __init__(self) -> None:
            self.number = next(alive)
            counts[0] += 1

        def __del__(self) -> None:
            counts[0] -= 1

    evidence = evidence_of(lambda: KEPT.append(Held()))
    assert evidence.holders
    KEPT.clear()
    assert counts[0] == 0


def test_nothing_of_ours_is_left_behind() -> None:
    makers = (os.open, os.pipe, os.dup)
    files = set(linecache.cache)
    evidence_of(keep_parser, domains=tracemalloc_ext)
    assert (os.open, os.pipe, os.dup) == makers
    assert set(linecache.cache) == files
    assert not tracemalloc.is_tracing()
    assert not tracemalloc_ext.is_tracking()
    assert gc.get_freeze_count() == 0


def test_an_abandoned_collector_leaves_nothing_behind_either() -> None:
    makers = (os.open, os.pipe, os.dup)
    collector = Collector("full", tracemalloc_ext)
    collector.begin()
    collector.abandon()
    assert (os.open, os.pipe, os.dup) == makers
    assert not tracemalloc.is_tracing()
    assert not tracemalloc_ext.is_tracking()
    assert gc.get_freeze_count() == 0


def test_tracking_that_the_user_began_goes_on() -> None:
    tracemalloc_ext.start()
    collector = Collector("full", tracemalloc_ext)
    collector.begin()
    collector.abandon()
    try:
        assert tracemalloc_ext.is_tracking()
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc_ext.stop()


def test_to_abandon_a_collector_that_has_ended_takes_nothing_from_the_user() -> None:
    collector = Collector("full", tracemalloc_ext)
    collector.begin()
    collector.end(runs=1)
    tracemalloc_ext.start()
    collector.abandon()
    try:
        assert tracemalloc_ext.is_tracking()
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc_ext.stop()


def keep_descriptor() -> None:
    KEPT.append(os.pipe())


def keep_file(folder: Path) -> None:
    KEPT.append((folder / "a.log").open("w"))


def keep_socket() -> None:
    KEPT.append(socket.socket())


def keep_process() -> None:
    KEPT.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1))


def test_the_line_that_opened_a_raw_descriptor_is_named() -> None:
    (pipe,) = evidence_of(keep_descriptor).creations
    for ends in KEPT:
        for end in ends:
            os.close(end)
    assert (pipe.kind, pipe.per_run) == ("descriptor", 2)
    assert pipe.source == "KEPT.append(os.pipe())"
    assert pipe.what.startswith("pipe:[")


def test_the_line_that_opened_a_file_is_named(tmp_path: Path) -> None:
    (file,) = evidence_of(lambda: keep_file(tmp_path)).creations
    assert (file.kind, file.what, file.per_run) == (
        "descriptor",
        str(tmp_path / "a.log"),
        1,
    )
    assert file.source == 'KEPT.append((folder / "a.log").open("w"))'


def test_the_line_that_opened_a_socket_is_named() -> None:
    (found,) = evidence_of(keep_socket).creations
    assert found.source == "KEPT.append(socket.socket())"
    assert found.what.startswith("socket:[")


def test_the_line_that_started_a_process_is_named() -> None:
    created = evidence_of(keep_process).creations
    for process in KEPT:
        process.communicate()
    (found,) = [each for each in created if each.kind == "process"]
    assert found.source.startswith("KEPT.append(subprocess.Popen(")
    assert found.what == sys.executable


def test_the_line_that_made_a_thread_is_named() -> None:
    done = threading.Event()

    def work() -> None:
        done.wait(30)

    def start() -> None:
        thread = threading.Thread(target=work, name="poller", daemon=True)
        thread.start()

    evidence = evidence_of(start)
    done.set()
    (thread,) = evidence.creations
    assert (thread.kind, thread.what, thread.per_run) == ("thread", "poller", 1)
    assert thread.source.startswith("thread = threading.Thread(target=work")
    assert evidence.hints[0].startswith("thread that nobody ends: ")


def test_the_line_that_made_a_pending_task_is_named() -> None:
    loop = asyncio.new_event_loop()
    waiting: dict[object, Any] = {}

    async def fetch(key: object) -> None:
        waiting[key] = loop.create_future()
        await waiting[key]

    async def fire() -> None:
        asyncio.ensure_future(fetch(object()))  # noqa: RUF006
        await asyncio.sleep(0)

    evidence = evidence_of(lambda: loop.run_until_complete(fire()))
    for future in waiting.values():
        future.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    (task,) = evidence.creations
    assert task.kind == "task"
    assert task.what.endswith("fetch")
    assert task.source.startswith("asyncio.ensure_future(fetch(object()))")


def add_handler() -> None:
    logging.getLogger("veo-test").addHandler(logging.NullHandler())


def keep_error() -> None:
    try:
        raise ValueError("bad row")
    except ValueError as error:
        KEPT.append(error)


@pytest.mark.parametrize(
    ("step", "hint"),
    [
        (add_handler, "logging handler that stays"),
        (keep_error, "exception that keeps frames"),
        (lambda: KEPT.append([1]), "list that only grows"),
    ],
    ids=["handler", "exception", "list"],
)
def test_a_pattern_with_its_evidence_has_a_hint(
    step: Callable[[], object], hint: str
) -> None:
    evidence = evidence_of(step)
    assert hint in [each.partition(": ")[0] for each in evidence.hints]


def test_without_evidence_only_c_code_is_left() -> None:
    evidence = Evidence(level="full", runs=4)
    assert text.lines(evidence) == (
        "held by    no new Python object, and no container that grew: C or C++ code "
        "keeps it (memory it fetched itself, a handle's workspace, a communicator, a "
        "C++ reference cycle)",
    )


@pytest.mark.parametrize(
    ("count", "size", "has_hint"),
    [
        pytest.param(40, 400, True, id="many small"),
        pytest.param(40, 40_000, False, id="many large"),
        pytest.param(3, 400, False, id="few small"),
    ],
)
def test_many_small_blocks_on_a_device_are_hinted_at(
    monkeypatch: pytest.MonkeyPatch, count: int, size: int, has_hint: bool
) -> None:
    cupy = stub_cupy.cupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)

    def copy_rows() -> None:
        KEPT.append([cupy.cuda.alloc(size) for _ in range(count)])

    evidence = evidence_of(copy_rows, domains=tracemalloc_ext)
    named = [hint.partition(":")[0] for hint in evidence.hints]
    assert ("small host-device copies" in named) is has_hint


def test_raw_memory_of_cupys_runtime_comes_with_its_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cupy = stub_cupy.cupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    evidence = evidence_of(
        lambda: cupy.cuda.runtime.malloc(1 << 20), domains=tracemalloc_ext
    )
    assert evidence.sites[0].memory == "cupy.runtime device 0"
    named = [hint.partition(":")[0] for hint in evidence.hints]
    assert "raw device memory that nobody frees" in named


def test_a_descriptors_number_that_is_used_again_is_not_the_first_ones() -> None:
    def keep_file() -> None:
        os.close(os.open("/", os.O_RDONLY))  # as `shutil.rmtree` does
        KEPT.append(Path(__file__).open("rb", buffering=0))  # noqa: SIM115

    (light,) = evidence_of(keep_file, level="light").creations
    assert (light.kind, light.where, light.per_run) == ("descriptor", "", 1)
    (full,) = evidence_of(keep_file).creations
    assert full.source.startswith("KEPT.append(")


def test_hints_of_what_is_left_out_go_with_it() -> None:
    place = GrownPlace(
        kind="dict",
        path="_pytest.cache.SEEN",
        root=Root.MODULE,
        owner="pytest",
        entries=4,
        entries_per_run=1,
    )
    evidence = Evidence(level="full", runs=4, places=(place,), hints=("mapping: ...",))
    (hint,) = evidence.without_machinery().hints
    assert hint.startswith("memory of C code: ")


def test_device_allocations_come_with_their_domain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cupy = stub_cupy.cupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)

    def keep_array() -> None:
        KEPT.append(cupy.cuda.alloc(100_000))

    evidence = evidence_of(keep_array, domains=tracemalloc_ext)
    first = evidence.sites[0]
    assert (first.memory, first.bytes_per_run) == ("cupy device 0", 100_352)
    line = text.lines(evidence)[0]
    assert "[cupy device 0, 98 KiB a run]" in line


class TorchCuda:
    """torch.cuda as far as block identities see it."""

    def __init__(self) -> None:
        self.blocks: list[dict[str, Any]] = []
        self.recorded: list[Any] = []
        self.memory = types.SimpleNamespace(_record_memory_history=self.record)

    def is_initialized(self) -> bool:
        return True

    def record(self, **kwargs: Any) -> None:
        self.recorded.append(kwargs["enabled"])

    def allocate(self, address: int, size: int) -> None:
        frame = {"filename": __file__, "line": 1, "name": "step"}
        self.blocks.append(
            {
                "address": address,
                "size": 512,
                "requested_size": size,
                "state": "active_allocated",
                "frames": [frame] if self.recorded else [],
            }
        )

    def memory_snapshot(self) -> list[dict[str, Any]]:
        free = {"size": 512, "state": "inactive"}
        segment = {"device": 0, "address": 1 << 40, "segment_pool_id": (0, 0)}
        return [segment | {"blocks": [*self.blocks, free]}]


@pytest.fixture
def torch_cuda(monkeypatch: pytest.MonkeyPatch) -> TorchCuda:
    cuda = TorchCuda()
    torch: Any = types.ModuleType("torch")
    torch.cuda, torch._C = cuda, types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "torch", torch)
    return cuda


def test_torchs_blocks_are_told_by_address_with_their_line(
    torch_cuda: TorchCuda,
) -> None:
    addresses = itertools.count(1 << 40, 512)
    evidence = evidence_of(lambda: torch_cuda.allocate(next(addresses), 400))
    (site,) = evidence.device_sites
    assert (site.source, site.device) == ("torch", "cuda:0")
    assert (site.bytes_per_run, site.blocks_per_run) == (400, 1)
    assert site.where.endswith("test_collect.py:1")
    assert torch_cuda.recorded == ["state", None]


def test_a_swap_for_a_block_of_equal_size_is_seen(torch_cuda: TorchCuda) -> None:
    addresses = itertools.count(1 << 40, 512)

    def swap() -> None:
        torch_cuda.blocks.clear()
        for _ in range(RUNS):
            torch_cuda.allocate(next(addresses), 400)

    (site,) = evidence_of(swap).device_sites
    assert site.blocks_per_run == 1


def test_a_history_the_user_records_is_left_alone(torch_cuda: TorchCuda) -> None:
    sys.modules["torch"]._C._cuda_isHistoryEnabled = lambda: True
    evidence = evidence_of(lambda: None)
    assert torch_cuda.recorded == []
    assert evidence.notes == (
        "torch's memory history was on already and is used as it is",
    )


class Tensor:
    """torch.Tensor as far as its short form goes."""

    shape, dtype, device = (2, 3), "torch.float32", "cuda:0"

    def __init__(self, grad_fn: object = None) -> None:
        self.grad_fn = grad_fn


class LazyTensor(Tensor):
    @property
    def grad_fn(self) -> object:
        raise AssertionError("code of the user ran")

    @grad_fn.setter
    def grad_fn(self, value: object) -> None: ...


@pytest.mark.parametrize(
    ("make", "form", "has_hint"),
    [
        (lambda: Tensor(grad_fn=object()), "(2, 3) float32 cuda:0 with a graph", True),
        (Tensor, "(2, 3) float32 cuda:0", False),
        (LazyTensor, "", False),
    ],
    ids=["graph", "no graph", "subclass"],
)
def test_a_tensor_is_described_and_a_kept_graph_is_hinted_at(
    torch_cuda: TorchCuda, make: Callable[[], object], form: str, has_hint: bool
) -> None:
    vars(sys.modules["torch"])["Tensor"] = Tensor
    evidence = evidence_of(lambda: KEPT.append(make()))
    assert evidence.holders[0].form == form
    hints = [hint.partition(":")[0] for hint in evidence.hints]
    assert ("graph kept by a tensor" in hints) is has_hint


def test_jax_is_not_started_to_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    jax: Any = types.ModuleType("jax")
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(
        sys.modules, "jax._src.xla_bridge", types.ModuleType("xla_bridge")
    )
    assert evidence_of(lambda: None).device_sites == ()


def test_jaxs_live_arrays_are_told_by_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    class Array:
        nbytes, dtype, shape = 400, "float32", (10, 10)

        def devices(self) -> set[str]:
            return {"cuda:0"}

        def is_deleted(self) -> bool:
            return False

    jax: Any = types.ModuleType("jax")
    bridge: Any = types.ModuleType("jax._src.xla_bridge")
    jax.live_arrays, bridge._backends = lambda: list(KEPT), {"cuda": object()}
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
    evidence = evidence_of(lambda: KEPT.append(Array()))
    (site,) = evidence.device_sites
    first, *_ = text.lines(evidence)
    assert "KEPT.append(Array())" in first  # it tells no line: Python's own does
    assert any("float32[10, 10]  [jax cuda:0" in line for line in text.lines(evidence))
    assert (site.source, site.device, site.bytes_per_run) == ("jax", "cuda:0", 400)
    assert site.line == "float32[10, 10]"


def test_native_evidence_without_memray_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native, "is_installed", lambda: False)
    with pytest.raises(MissingDependency, match=r"pip install 'pytest-veo\[native\]'"):
        Collector("native").begin()


@pytest.mark.skipif(not native.is_installed(), reason="memray is not installed")
def test_native_evidence_names_the_function_in_c() -> None:
    def keep() -> None:
        KEPT.append(bytearray(300_000))

    def run(depth: int = 5) -> None:
        # memray loses the outermost calls after its start, of which a test has many
        run(depth - 1) if depth else keep()

    evidence = evidence_of(run, "native")
    (site,) = [s for s in evidence.native_sites if s.bytes_per_run >= 300_000]
    assert "bytearray(300_000)" in site.source
    assert any("ByteArray" in name for name in site.native)
    assert evidence.hints[0].startswith("memory of C code: ")
    assert text.lines(evidence)[1].strip().startswith("in C: ")
