"""Building the simulator for a client, and what is said when it cannot be built."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.simgpu import build
from tests.simgpu import environments
from tests.simgpu import fixtures
from tests.simgpu import stubs
from tests.simgpu.build import Build
from tests.simgpu.children import run
from tests.simgpu.driver import Sim


pytestmark = pytest.mark.sim


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
