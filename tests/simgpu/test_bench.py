"""The bench itself: what it refuses, what it survives, how its books are kept."""

from __future__ import annotations

import concurrent.futures
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.simgpu import build
from tests.simgpu import driver
from tests.simgpu import environments
from tests.simgpu import fixtures
from tests.simgpu import layout
from tests.simgpu import stubs
from tests.simgpu.build import Build
from tests.simgpu.driver import CudaCode
from tests.simgpu.driver import Sim
from tests.simgpu.driver import SimulatorRefused


MIB = 1 << 20
CONTEXT = 300 * MIB
REFUSED = 78
LOAD_NVML = "import ctypes; ctypes.CDLL('libnvidia-ml.so.1')"


def run(sim: Sim, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python code in a child on the simulated devices."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**sim.environment(), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# ---- the guard ----


@pytest.mark.parametrize(
    ("path", "content", "because"),
    [
        ("dev/nvidiactl", b"", "/dev/nvidiactl exists"),
        (
            "etc/ld.so.cache",
            b"\0libcuda.so.1\0/usr/lib/libcuda.so.1\0",
            "libcuda.so.1 is in the loader's cache",
        ),
    ],
    ids=["device", "library"],
)
def test_beside_a_real_driver_it_refuses_to_load(
    sim: Sim, tmp_path: pathlib.Path, path: str, content: bytes, because: str
) -> None:
    root = tmp_path / "root"
    (root / path).parent.mkdir(parents=True)
    (root / path).write_bytes(content)
    assert driver.real_driver(root) == because
    refused = run(sim, LOAD_NVML, VEOSIM_GUARD_ROOT=str(root))
    assert refused.returncode == REFUSED
    assert refused.stderr == (
        f"veosim: refused to load: a real NVIDIA driver is present ({because}); "
        f"VEOSIM_FORCE=1 overrides\n"
    )
    forced = run(sim, LOAD_NVML, VEOSIM_GUARD_ROOT=str(root), VEOSIM_FORCE="1")
    assert forced.returncode == 0, forced.stderr


def test_a_toolkit_without_a_driver_is_no_driver(tmp_path: pathlib.Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ld.so.cache").write_bytes(b"\0libcudart.so.13\0libcuda.so.12\0")
    assert driver.real_driver(tmp_path) == ""


@pytest.mark.parametrize("library", ["libnvidia-ml.so.1", "libcuda.so.1"])
def test_without_a_state_file_it_refuses_to_load(sim: Sim, library: str) -> None:
    refused = run(sim, f"import ctypes; ctypes.CDLL({library!r})", VEOSIM_STATE="")
    assert refused.returncode == REFUSED
    assert refused.stderr == (
        "veosim: refused to load: VEOSIM_STATE names no state file (made by "
        "driver.py)\n"
    )


# ---- state files ----


def damaged(sim: Sim, how: str) -> str:
    """Spoil a state file; what is said of it."""
    path, size = sim.path, ctypes.sizeof(layout.State)
    content = bytearray(path.read_bytes())
    if how == "foreign":
        content[:8] = b"SQLite f"
        path.write_bytes(content)
        return f"{path} is not a state file of the simulator (magic 66206574694c5153)"
    if how == "empty":
        path.write_bytes(b"")
        return f"{path} is not a state file of the simulator (0 bytes)"
    if how == "short":
        path.write_bytes(content[: size - 8])
        return (
            f"{path} is cut short or padded ({size - 8} bytes, {size} expected): "
            f"delete it"
        )
    content[8:12] = (2).to_bytes(4, sys.byteorder)
    path.write_bytes(content)
    return (
        f"{path} was written by another version of the simulator (version 2, {size} "
        f"bytes; this one has version 3, {size} bytes): delete it"
    )


@pytest.mark.parametrize("how", ["foreign", "empty", "short", "stale"])
def test_a_stale_or_foreign_state_file_is_refused(
    sim_build: Build, tmp_path: pathlib.Path, how: str
) -> None:
    sim = Sim.create(tmp_path / "spoilt", sim_build)
    environment = sim.environment()
    reason = damaged(sim, how)
    with pytest.raises(SimulatorRefused) as caught:
        Sim.open(sim.path, sim_build)
    assert str(caught.value) == f"veosim: {reason}"
    child = subprocess.run(
        [sys.executable, "-c", LOAD_NVML],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert child.returncode == REFUSED
    assert child.stderr == f"veosim: refused to load: {reason}\n"


def test_a_state_file_is_not_made_twice(sim: Sim, sim_build: Build) -> None:
    with pytest.raises(SimulatorRefused, match="cannot be opened: File exists"):
        Sim.create(sim.path, sim_build)


def test_two_views_of_one_file_are_one_state(sim: Sim, sim_build: Build) -> None:
    other = Sim.open(sim.path, sim_build)
    sim.device(1).other_used_bytes = 7
    assert other.device(1).other_used_bytes == 7
    other.close()
    with pytest.raises(IndexError, match="device 8: the simulator has 8"):
        sim.device(8)


def test_a_mirror_that_drifted_is_refused(
    sim_build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = ctypes.CDLL(str(sim_build.folder / "libveosim.so"))
    layout.verify(library)
    monkeypatch.setattr(layout, "mirror", lambda: (1, 2, 3))
    with pytest.raises(ImportError, match=r"does not match src/veosim\.h"):
        layout.verify(library)


# ---- the books ----

HOLD_LOCK_AND_DIE = """
    import os, signal
    from tests.simgpu.driver import Sim
    sim = Sim.here()
    with sim.locked():
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_lock_survives_its_owners_death(sim: Sim) -> None:
    child = run(sim, HOLD_LOCK_AND_DIE, PYTHONPATH=str(environments.ROOT))
    assert child.returncode == -signal.SIGKILL
    sim.fail("cuInit", CudaCode.UNKNOWN)  # takes the lock
    assert sim.state.armed == 1


ALLOCATE = """
    import ctypes, sys
    cuda = ctypes.CDLL("libcudart.so.13")
    pointer = ctypes.c_void_p()
    def allocate(mib):
        assert cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(mib << 20)) == 0
        return pointer.value
"""


def test_a_killed_process_gives_its_memory_back(sim: Sim) -> None:
    code = ALLOCATE + "    allocate(64); print('up', flush=True); sys.stdin.read()"
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=sim.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        assert sim.process_bytes(child.pid) == CONTEXT + 64 * MIB
        child.kill()
    assert sim.process_bytes(child.pid) == 0


def test_an_exec_gives_the_old_images_memory_back(sim: Sim) -> None:
    code = (
        ALLOCATE
        + """
    import os
    if len(sys.argv) == 1:
        allocate(64)
        os.execv(sys.executable, [sys.executable, "-c", CODE, "again"])
    allocate(2)
    from tests.simgpu.driver import Sim
    print(Sim.here().process_bytes(os.getpid()))
"""
    )
    code = textwrap.dedent(code)
    code = code.replace("CODE", repr(code))
    child = run(sim, code, PYTHONPATH=str(environments.ROOT))
    assert child.stdout == f"{CONTEXT + 2 * MIB}\n", child.stderr


def test_small_allocations_are_charged_by_the_granule(sim: Sim) -> None:
    code = (
        ALLOCATE
        + """
    import os
    from tests.simgpu.driver import Sim
    sim, pointers = Sim.here(), []
    for _ in range(3):
        assert cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 20)) == 0
        pointers.append(pointer.value)
        row = sim.process(os.getpid())
        print(row.used_bytes - row.context_bytes, row.requested_bytes)
    for one in pointers:
        assert cuda.cudaFree(ctypes.c_void_p(one)) == 0
    row = sim.process(os.getpid())
    print(row.used_bytes - row.context_bytes, row.requested_bytes)
    print(cuda.cudaFree(ctypes.c_void_p(pointers[0])))
"""
    )
    child = run(sim, code, PYTHONPATH=str(environments.ROOT))
    assert child.stdout.splitlines() == [
        f"{2 * MIB} {1 * MIB}",
        f"{2 * MIB} {2 * MIB}",
        f"{4 * MIB} {3 * MIB}",
        "0 0",
        "1",  # freed twice: invalid value
    ], child.stderr


FREE_AND_LOOK = (
    ALLOCATE
    + """
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    def used():
        assert cuda.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)) == 0
        return (total.value - free.value) >> 20
    cuda.cudaFree(ctypes.c_void_p(allocate(64)))
    print([used() for _ in range(5)])
    print(allocate(8 * 1024 - 300 - 256) > 0)
"""
)
HELD, FREE = 256 + 300 + 64, 256 + 300


def test_a_free_shows_at_once(sim: Sim) -> None:
    assert run(sim, FREE_AND_LOOK).stdout == f"{[FREE] * 5}\nTrue\n"


def test_a_delayed_free_shows_after_some_queries(sim: Sim) -> None:
    sim.delay_frees(queries=3)
    # the memory itself is free at once: the driver's counters are late
    assert run(sim, FREE_AND_LOOK).stdout == f"{[HELD] * 3 + [FREE] * 2}\nTrue\n"


def test_a_delayed_free_shows_after_some_time(sim: Sim) -> None:
    sim.delay_frees(ms=3_600_000)
    assert run(sim, FREE_AND_LOOK).stdout == f"{[HELD] * 5}\nTrue\n"


def test_other_tenants_take_memory_away(sim: Sim) -> None:
    sim.device(0).other_used_bytes = 7 << 30
    child = run(sim, ALLOCATE + "    allocate(1024)")
    assert child.returncode == 1
    assert "AssertionError" in child.stderr


def test_a_context_that_does_not_fit_is_out_of_memory(sim: Sim) -> None:
    sim.device(0).other_used_bytes = (8 << 30) - 300 * MIB
    code = "import ctypes; print(ctypes.CDLL('libcudart.so.13').cudaFree(None))"
    assert run(sim, code).stdout == "2\n"


def test_a_reset_device_has_nothing_of_the_process(sim: Sim) -> None:
    code = (
        ALLOCATE
        + """
    import os
    from tests.simgpu.driver import Sim
    allocate(64)
    assert cuda.cudaDeviceReset() == 0
    print(Sim.here().process_bytes(os.getpid()))
    allocate(2)
    print(Sim.here().process_bytes(os.getpid()) >> 20)
"""
    )
    child = run(sim, code, PYTHONPATH=str(environments.ROOT))
    assert child.stdout == "0\n302\n", child.stderr


def test_the_driver_waits_for_its_initialisation(sim: Sim) -> None:
    code = """
        import ctypes
        cuda, n = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        print(cuda.cuDeviceGetCount(ctypes.byref(n)), cuda.cuInit(0))
        print(cuda.cuDeviceGetCount(ctypes.byref(n)), n.value)
    """
    assert run(sim, code).stdout == "3 0\n0 2\n"


def test_a_lost_device_fails_cuda_too(sim: Sim) -> None:
    sim.device(0).lost = 1
    code = """
        import ctypes
        cuda = ctypes.CDLL("libcudart.so.13")
        print(cuda.cudaDeviceSynchronize(), cuda.cudaGetLastError())
    """
    assert run(sim, code).stdout == f"{CudaCode.UNKNOWN:d} {CudaCode.UNKNOWN:d}\n"


def test_an_integrated_device_says_so_in_its_attributes(sim: Sim) -> None:
    sim.device(1).integrated = 1
    code = """
        import ctypes
        cuda, v = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        cuda.cuInit(0)
        print([cuda.cuDeviceGetAttribute(ctypes.byref(v), 18, d) or v.value
               for d in range(2)])
    """
    assert run(sim, code).stdout == "[0, 1]\n"


def test_device_memory_is_no_private_memory_of_the_host(sim: Sim) -> None:
    code = (
        ALLOCATE
        + """
    def statm():
        return [int(word) * 4096 for word in open("/proc/self/statm").read().split()]
    kept = [allocate(1)]
    size, resident, *_, data, _ = statm()
    kept += [allocate(512) for _ in range(4)]
    print([abs(after - before) < 1 << 20
           for before, after in zip((size, resident), statm())], statm()[5] == data)
"""
    )
    # neither resident nor private nor, after the context, more address space
    assert run(sim, code).stdout == "[True, True] True\n"


def test_addresses_are_given_back_and_used_again(sim: Sim) -> None:
    code = (
        ALLOCATE
        + """
    kept = {allocate(mib): mib for mib in (1, 2, 64, 3, 200)}
    assert len(kept) == 5
    ctypes.memset(min(kept), 7, 1 << 20)
    first = min(kept)
    for one in kept:
        assert cuda.cudaFree(ctypes.c_void_p(one)) == 0
    again = allocate(270)
    print(again - first < 2 << 20, ctypes.string_at(first, 4))
"""
    )
    # the range is whole again (large blocks begin at a granule) and holds no past
    assert run(sim, code).stdout == f"True {bytes(4)!r}\n"


# ---- building ----


def test_builds_asked_for_at_once_are_one(
    sim_build: Build, tmp_path: pathlib.Path
) -> None:
    code = (
        "from tests.simgpu import build; import pathlib, sys;"
        "print(build.build(cache=pathlib.Path(sys.argv[1])).folder)"
    )

    def ask(_: int) -> str:
        return subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": str(environments.ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        folders = set(pool.map(ask, range(2)))
    assert len(folders) == 1
    assert [path.name for path in tmp_path.iterdir()] == [sim_build.folder.name]


def test_what_gcc_says_is_passed_on(tmp_path: pathlib.Path) -> None:
    if build.unavailable():
        fixtures.cannot_run(build.unavailable())
    broken = tmp_path / "broken.c"
    broken.write_text("int f(void) { return nonsense; }\n")
    library = build.Library("libbroken.so", (), links=())
    with pytest.raises(build.BuildFailed, match="nonsense"):
        build.compile_library(tmp_path, library, broken)


CLIENT = """
int cuInit(unsigned); int cudaFromTheFuture(void); int cublasCreate_v2(void **);
int cudnnSomething(void); const char *cublasGetStatusString(int);
int client(void) {
    void *handle;
    return cuInit(0) + cudaFromTheFuture() + 10000 * cublasCreate_v2(&handle)
        + 100000 * cudnnSomething() + 1000000 * (cublasGetStatusString(0)[0] != 's');
}
"""


@pytest.fixture
def client(tmp_path: pathlib.Path) -> stubs.Client:
    """A client library that wants a function of the CUDA runtime we do not have."""
    if build.unavailable():
        fixtures.cannot_run(build.unavailable())
    vendor, folder = tmp_path / "vendor", tmp_path / "client"
    vendor.mkdir()
    folder.mkdir()
    source = tmp_path / "client.c"
    source.write_text(CLIENT)
    exports = {
        "libcuda.so.1": ["cuInit"],
        "libcudart.so.13": ["cudaFromTheFuture"],
        "libcublas.so.13": ["cublasCreate_v2", "cublasGetStatusString"],
        "libcudnn.so.9": ["cudnnSomething"],
    }
    for soname, functions in exports.items():
        code, script = vendor / f"{soname}.c", vendor / f"{soname}.map"
        code.write_text(
            "\n".join(f"int {name}(void) {{ return 0; }}" for name in functions)
        )
        script.write_text(f"{soname} {{ global: *; }};\n")
        links = [f"-Wl,-soname,{soname}", f"-Wl,--version-script={script}"]
        command = ["gcc", "-w", "-fPIC", "-shared", *links, "-o"]
        subprocess.run([*command, str(vendor / soname), str(code)], check=True)
    libraries = [str(vendor / soname) for soname in exports]
    subprocess.run(
        ["gcc", "-fPIC", "-shared", "-o", folder / "libclient.so", source, *libraries],
        check=True,
    )
    shutil.rmtree(vendor)
    return stubs.Client(
        name="client", version="1", folders=(folder,), succeed=("libcublas.so.13",)
    )


def test_what_a_client_wants_and_we_have_not_is_a_listed_gap(
    client: stubs.Client, tmp_path: pathlib.Path
) -> None:
    built = build.build(client, tmp_path / "cache")
    assert built.gaps == (stubs.Gap("libcudart.so.13", "cudaFromTheFuture"),)
    again = build.build(client, tmp_path / "cache")
    assert again == built
    sim = Sim.create(tmp_path / "state", built)
    child = run(
        sim,
        f"import ctypes; print(ctypes.CDLL({str(client.folders[0] / 'libclient.so')!r})"
        f".client())",
    )
    # the gap says "not supported" (801), cuBLAS succeeds, cuDNN fails cleanly
    assert child.stdout == f"{801 + 100000}\n", child.stderr
    sim.close()


def test_another_version_of_the_client_is_another_build(client: stubs.Client) -> None:
    newer = stubs.Client(name="client", version="2", folders=client.folders)
    assert build._key(client) != build._key(newer)


# ---- what a person and what CI sees ----


@pytest.mark.parametrize(
    ("required", "name", "fails"),
    [
        ("", "torch", False),
        ("1", "torch", True),
        ("1", "extras", False),
        ("all", "torch", True),
        ("all", "extras", True),
    ],
)
def test_what_is_missing_skips_for_a_person_and_fails_where_it_is_required(
    monkeypatch: pytest.MonkeyPatch, required: str, name: str, fails: bool
) -> None:
    monkeypatch.setenv("VEO_REQUIRE_SIM", required)
    monkeypatch.setenv("VEO_ENVS", "/nowhere")
    monkeypatch.setattr(build, "unavailable", lambda: "")
    reason = f"the environment {name!r} is not at /nowhere/{name}: run ci/env {name}"
    outcome: type[BaseException] = (
        pytest.fail.Exception if fails else pytest.skip.Exception
    )
    with pytest.raises(outcome) as caught:
        fixtures.environment(name)
    prefix = f"VEO_REQUIRE_SIM={required}, but " if fails else ""
    assert str(caught.value) == prefix + reason


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("PATH", "")
    assert build.unavailable() == (
        "the simulated GPU driver needs gcc and readelf and nm on PATH"
    )
    monkeypatch.setattr(sys, "platform", "darwin")
    assert build.unavailable() == "the simulated GPU driver is for Linux, not darwin"
