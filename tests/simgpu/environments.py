"""The Python environments with real GPU libraries, made by `ci/env`."""

from __future__ import annotations

import dataclasses
import os
import pathlib

from tests.simgpu.stubs import Client


ROOT = pathlib.Path(__file__).parents[2]


class EnvironmentMissing(Exception):
    """An environment was not made here; the message has the command."""


@dataclasses.dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment, by the name that `ci/env` gives it."""

    name: str
    folder: pathlib.Path

    @property
    def python(self) -> pathlib.Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> pathlib.Path:
        """Its site-packages."""
        (found,) = self.folder.glob("lib/python3.*/site-packages")
        return found

    def version(self, distribution: str) -> str:
        """The version of an installed distribution; empty when it is not there."""
        stem = distribution.replace("-", "_")
        for found in self.packages.glob(f"{stem}-*.dist-info"):
            return found.name.removesuffix(".dist-info").partition("-")[2]
        return ""


def find(name: str) -> Environment:
    """An environment that `ci/env` has made.

    Raises:
        EnvironmentMissing: it has not.
    """
    root = pathlib.Path(os.environ.get("VEO_ENVS") or ROOT / ".veo-envs")
    found = Environment(name, root / name)
    if not (found.folder / "complete").exists():
        raise EnvironmentMissing(
            f"the environment {name!r} is not at {found.folder}: run ci/env {name}"
        )
    return found


def client(env: Environment, framework: str) -> Client | None:
    """What a framework needs of the simulator's libraries; None: nothing special."""
    places, succeed = _LINKED.get(framework, ((), ()))
    if not places:
        return None
    return Client(
        name=framework,
        version=env.version(_DISTRIBUTION.get(framework, framework)),
        folders=tuple(env.packages / place for place in places),
        succeed=succeed,
    )


_BLAS = tuple(f"lib{name}.so.{n}" for name in ("cublas", "cublasLt") for n in (12, 13))
# Where the shared objects lie, and which vendor libraries report success: products
# and convolutions "run", so that workspaces, caches and graphs come into being.
_LINKED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "torch": (("torch/lib",), _BLAS),
    "onnxruntime": (("onnxruntime/capi",), (*_BLAS, "libcudnn.so.9")),
    "jax": (("jax_cuda13_plugin", "jax_plugins/xla_cuda13"), ()),
}
_DISTRIBUTION = {"onnxruntime": "onnxruntime-gpu", "jax": "jax-cuda13-plugin"}
