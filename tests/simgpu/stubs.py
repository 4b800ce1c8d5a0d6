"""Stands in for the vendor libraries that a client was linked against.

A client such as PyTorch will not load unless every library it needs is there with
every function it imports. The names are read from the client's own import tables;
what the simulator does not implement answers "not supported" and is listed as a gap.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import subprocess
from collections.abc import Iterable


VENDOR = re.compile(r"lib(cu|nv|nccl)")
# Libraries without symbol versions: their functions are known by their prefix.
PREFIXES = (
    ("nccl", "libnccl.so.2"),
    ("cuFile", "libcufile.so.0"),
    ("cusparseLt", "libcusparseLt.so.0"),
    ("nvshmem", "libnvshmem_host.so.3"),
    ("curand", "libcurand.so.10"),
    ("cudnn", "libcudnn.so.9"),
    ("nvrtc", "libnvrtc.so.13"),
    ("nvJitLink", "libnvJitLink.so.13"),
)
DRIVER_FUNCTION = re.compile(r"cu[A-Z]")
NOT_SUPPORTED = 801


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A library that is to run over the simulated driver."""

    name: str
    version: str
    folders: tuple[pathlib.Path, ...]
    """Where its shared objects lie."""
    succeed: tuple[str, ...] = ()
    """Vendor libraries whose stubs report success instead of failing."""


@dataclasses.dataclass(frozen=True, slots=True)
class Gap:
    """A function that a client imports and the simulator does not implement."""

    library: str
    function: str


class Imports:
    """What a client wants of each vendor library."""

    def __init__(self) -> None:
        self._wanted: dict[str, set[str]] = {}
        self._nodes: dict[str, str] = {}

    def need(self, soname: str) -> None:
        """The client will not load without this library."""
        self._wanted.setdefault(soname, set())

    def want(self, soname: str, function: str, node: str = "") -> None:
        """The client will not load without this function, of this symbol version."""
        self._wanted.setdefault(soname, set()).add(function)
        if node:
            self._nodes[soname] = node

    def sonames(self) -> set[str]:
        """Every library wanted."""
        return set(self._wanted)

    def functions(self, soname: str) -> set[str]:
        """Every function wanted of a library."""
        return self._wanted.get(soname, set())

    def node(self, soname: str) -> str:
        """The symbol version that the client asks a library for."""
        return self._nodes.get(soname, "")


def imports_of(client: Client) -> Imports:
    """Read the import tables of every shared object of a client."""
    found = Imports()
    for path in _shared_objects(client):
        for soname in _needed(path):
            if VENDOR.match(soname) and not path.with_name(soname).exists():
                found.need(soname)
        files = _version_files(path)
        for function, node in _undefined(path):
            soname = files.get(node, "") if node else _by_prefix(function)
            if VENDOR.match(soname):
                found.want(soname, function, node)
    return found


def _shared_objects(client: Client) -> list[pathlib.Path]:
    found = (path for folder in client.folders for path in folder.glob("*.so*"))
    return sorted(path for path in found if path.is_file())


def _needed(path: pathlib.Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.+?)\]", _run("readelf", "-dW", path))


def _version_files(path: pathlib.Path) -> dict[str, str]:
    """Which library each symbol version stands for."""
    files, current = {}, ""
    for line in _run("readelf", "-VW", path).splitlines():
        if found := re.search(r"File: (\S+)", line):
            current = found[1]
        if current and (found := re.search(r"Name: (\S+)", line)):
            files[found[1]] = current
    return files


def _undefined(path: pathlib.Path) -> Iterable[tuple[str, str]]:
    for line in _run("nm", "-D", "--undefined-only", path).splitlines():
        function, _, node = line.split()[-1].partition("@")
        yield function, node.lstrip("@")


def _by_prefix(function: str) -> str:
    for prefix, soname in PREFIXES:
        if function.startswith(prefix):
            return soname
    return "libcuda.so.1" if DRIVER_FUNCTION.match(function) else ""


def defined_in(path: pathlib.Path) -> set[str]:
    """The functions that a shared object offers."""
    lines = _run("nm", "-D", "--defined-only", path).splitlines()
    return {line.split()[-1].partition("@")[0] for line in lines if line.strip()}


def gap_source(functions: Iterable[str]) -> str:
    """C for functions that only answer "not supported"."""
    lines = ['#include "veosim.h"', "void veosim_trace(const char *what);"]
    lines += [
        f"VEOSIM_API int {name}(void);\n"
        f'VEOSIM_API int {name}(void) {{ veosim_trace("gap: {name}"); '
        f"return {NOT_SUPPORTED}; }}"
        for name in functions
    ]
    return "\n".join(lines) + "\n"


def stub_source(soname: str, functions: Iterable[str], *, succeed: bool) -> str:
    """C for a vendor library of which only the answers matter.

    With `succeed` every call reports success and makes a handle where one is asked
    for (cuBLAS: a matrix product "runs"); without it every call fails cleanly.
    """
    lines = [f"/* {soname} */", "#include <stdlib.h>"]
    lines += [_stub(name, succeed=succeed) for name in sorted(functions)]
    return "\n".join(lines) + "\n"


def _stub(name: str, *, succeed: bool) -> str:
    if "String" in name:
        return f'const char *{name}() {{ return "simulated"; }}'
    if name == "cublasLtMatmulAlgoGetHeuristic" and succeed:
        # (handle, operation, A, B, C, D, preference, wanted, results, *found)
        return (
            f"int {name}(void *a, void *b, void *c, void *d, void *e, void *f, "
            f"void *g, int n, void *r, int *found) {{ *found = 1; return 0; }}"
        )
    if name.endswith("GetVersion"):
        return f"long {name}() {{ return 92400; }}"
    if succeed and re.search(r"Create(_v2)?$", name):
        return f"int {name}(void **h) {{ if (h) *h = malloc(64); return 0; }}"
    if succeed and re.search(r"Destroy(_v2)?$", name):
        return f"int {name}(void *h) {{ free(h); return 0; }}"
    return f"int {name}() {{ return {0 if succeed else 1}; }}"


def _run(*command: str | pathlib.Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout
