"""Compiles the simulator with gcc, once for each version of its sources and client.

The result lies in a cache folder named by a hash of everything that went into it.
A build is made in a folder of its own and renamed when it is whole, so that any
number of processes may ask at once.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from tests.simgpu import stubs


SOURCES = pathlib.Path(__file__).parent / "src"
FLAGS = ("-O1", "-std=gnu11", "-fPIC", "-shared", "-pthread")
OURS = ("-fvisibility=hidden", "-Wall", "-Wextra")


class BuildFailed(Exception):
    """The compiler did not make a library."""


@dataclasses.dataclass(frozen=True, slots=True)
class Library:
    """One simulated library: its name for the loader, and what it is made from."""

    soname: str
    sources: tuple[str, ...]
    links: tuple[str, ...] = ("libveosim.so",)
    defines: tuple[str, ...] = ()
    version_node: str = ""


DRIVER = (
    *("core.c", "pool.c", "space.c", "work.c"),
    *("driver_device.c", "driver_memory.c", "driver_stream.c"),
)
RUNTIME = ("runtime_device.c", "runtime_memory.c", "runtime_work.c")
OVER_DRIVER = ("libcuda.so.1", "libveosim.so")
LIBRARIES = (
    Library("libveosim.so", ("state.c",), links=()),
    Library("libnvidia-ml.so.1", ("nvml.c", "nvml_memory.c")),
    Library(
        "libcuda.so.1",
        DRIVER,
    ),
    Library("libcudart.so.12", RUNTIME, OVER_DRIVER, ("CUDART_12",), "libcudart.so.12"),
    Library("libcudart.so.13", RUNTIME, OVER_DRIVER, (), "libcudart.so.13"),
    Library("libveosim-cupy.so", ("cupy_door.c",), OVER_DRIVER),
    Library("libnvrtc.so.12", ("nvrtc.c",), defines=("NVRTC_MAJOR=12",)),
    Library("libnvrtc.so.13", ("nvrtc.c",), defines=("NVRTC_MAJOR=13",)),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Build:
    """A folder of simulated libraries, ready for LD_LIBRARY_PATH."""

    folder: pathlib.Path
    gaps: tuple[stubs.Gap, ...]
    """What the client imports and the simulator has not: each such function is
    there, and answers "not supported"."""


def unavailable() -> str:
    """Why the simulator cannot be built here; empty when it can."""
    if not sys.platform.startswith("linux"):
        return f"the simulated GPU driver is for Linux, not {sys.platform}"
    missing = [tool for tool in ("gcc", "readelf", "nm") if shutil.which(tool) is None]
    if missing:
        return f"the simulated GPU driver needs {' and '.join(missing)} on PATH"
    return ""


def cache_folder() -> pathlib.Path:
    """Where builds are kept: VEOSIM_CACHE, or a folder in the user's cache."""
    chosen = os.environ.get("VEOSIM_CACHE")
    if chosen:
        return pathlib.Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "pytest-veo-simgpu"


def build(
    client: stubs.Client | None = None, cache: pathlib.Path | None = None
) -> Build:
    """The simulator for a client library (None: NVML and CUDA alone).

    Args:
        client: whose imports the libraries must satisfy.
        cache: where to keep the build; `cache_folder()` by default.

    Raises:
        BuildFailed: gcc refused, with what it said.
    """
    root = cache or cache_folder()
    folder = root / _key(client)
    if not folder.exists():
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="unfinished-", dir=root) as made:
            work = pathlib.Path(made) / folder.name
            work.mkdir()
            _make(work, client)
            # A folder that is there by now is another process's equal build.
            if not folder.exists():
                _move(work, folder)
    gaps = json.loads((folder / "gaps.json").read_text())
    return Build(folder, tuple(stubs.Gap(*gap) for gap in gaps))


def _move(work: pathlib.Path, folder: pathlib.Path) -> None:
    try:
        work.rename(folder)
    except OSError:
        if not folder.exists():
            raise


def _key(client: stubs.Client | None) -> str:
    digest = hashlib.sha256()
    here = pathlib.Path(__file__)
    files = [*sorted(SOURCES.glob("*.[ch]")), here, here.with_name("stubs.py")]
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    digest.update(_run(["gcc", "-dumpfullversion", "-dumpmachine"]).encode())
    digest.update(repr(client).encode())
    name = f"{client.name}-{client.version}" if client else "core"
    return f"{name}-{digest.hexdigest()[:16]}"


def _make(work: pathlib.Path, client: stubs.Client | None) -> None:
    for library in LIBRARIES:
        compile_library(work, library)
    # CuPy wants to see a toolkit's headers before it "compiles" a kernel.
    headers = work / "toolkit" / "include"
    headers.mkdir(parents=True)
    (headers / "cuda_runtime.h").write_text("/* simulated */\n")
    gaps: list[stubs.Gap] = []
    if client is not None:
        imports = stubs.imports_of(client)
        for library in LIBRARIES:
            known = stubs.defined_in(work / library.soname)
            lacking = sorted(imports.functions(library.soname) - known)
            gaps += [stubs.Gap(library.soname, name) for name in lacking]
            if lacking:
                extra = work / f"gaps-{library.soname}.c"
                extra.write_text(stubs.gap_source(lacking))
                compile_library(work, library, extra)
        mine = {library.soname for library in LIBRARIES}
        for soname in sorted(imports.sonames() - mine):
            _make_stub(work, client, imports, soname)
    (work / "gaps.json").write_text(json.dumps([dataclasses.astuple(g) for g in gaps]))


def compile_library(
    work: pathlib.Path, library: Library, *extra: pathlib.Path
) -> pathlib.Path:
    """Compile one library into `work`, with further C files linked in."""
    command = ["gcc", *FLAGS, *OURS, f"-I{SOURCES}"]
    command += [f"-D{define}" for define in library.defines]
    command += [f"-Wl,-soname,{library.soname}", "-Wl,-rpath,$ORIGIN"]
    if library.version_node:
        script = work / f"{library.soname}.map"
        script.write_text(f"{library.version_node} {{ global: *; }};\n")
        command.append(f"-Wl,--version-script={script}")
    target = work / library.soname
    command += ["-o", str(target)]
    command += [str(SOURCES / source) for source in library.sources]
    command += [str(path) for path in extra]
    command += [str(work / link) for link in library.links]
    _run(command)
    return target


def _make_stub(
    work: pathlib.Path, client: stubs.Client, imports: stubs.Imports, soname: str
) -> None:
    source = work / f"stub-{soname}.c"
    source.write_text(
        stubs.stub_source(
            soname, imports.functions(soname), succeed=soname in client.succeed
        )
    )
    # Stubs have no prototypes and names that gcc knows otherwise: no warnings.
    command = ["gcc", *FLAGS, "-w", "-fno-builtin", f"-Wl,-soname,{soname}"]
    node = imports.node(soname)
    if node:
        script = work / f"{soname}.map"
        script.write_text(f"{node} {{ global: *; }};\n")
        command.append(f"-Wl,--version-script={script}")
    _run([*command, "-o", str(work / soname), str(source)])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildFailed(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout
