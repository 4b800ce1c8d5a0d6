"""Every leak scenario: what it is, and what must be said of it and of its twin.

A scenario is a pair of files, `of_<environment>/<name>_leaky.py` and
`<name>_clean.py`, of which the last test is judged unless `judged` says otherwise.
The figures are what the allocator and the driver book, byte by byte; `loop` proves
them without the plugin.
"""

from __future__ import annotations

import dataclasses
import pathlib

from pytest_veo.memory.snapshot import HOST


FOLDER = pathlib.Path(__file__).parent
MIB = 1 << 20
FIRST = "GPU-51300000-0000-4000-8000-000000000000"
SECOND = "GPU-51300000-0000-4000-8000-000000000001"
MIG = "MIG-51300000-0000-4000-9000-000000000000"

WARM_UP = ("retention", "clean")
"""Growth at a first use, which is listed where it is large."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One pair of files and the truth about it."""

    environment: str
    """As `ci/env` names it; `cupy13` plays the same files as `cupy`."""
    name: str
    counter: str = ""
    """`probe.name` that grows in the leaky file; empty: none does."""
    device: str = FIRST
    per_run: int = MIB
    """Growth of each run of the leaky test, in the counter's unit."""
    outcome: str = "leak"
    """The leaky test's verdict."""
    twin: tuple[str, ...] = ("clean",)
    """What may be said of the clean twin."""
    judged: int = -1
    """Which test of the session is judged."""
    mig: bool = False
    """The first device is cut into slices."""
    simulator_only: bool = False
    """It moves the simulator itself: not for a real card."""
    why: str = ""
    """What is special, where the name does not say."""

    library: str = ""
    """The framework, where the environment is not named for it."""

    @property
    def framework(self) -> str:
        """Whose files it is."""
        return self.library or self.environment.removesuffix("13")

    def file(self, twin: str) -> pathlib.Path:
        """Its file: `leaky` or `clean`."""
        return FOLDER / f"of_{self.framework}" / f"{self.name}_{twin}.py"

    def __str__(self) -> str:
        return f"{self.library or self.environment}-{self.name}"


def _torch(name: str, counter: str = "torch.allocated", **said: object) -> Scenario:
    return Scenario(environment="torch", name=name, counter=counter, **said)  # type: ignore[arg-type]


TORCH = (
    _torch("global_list"),
    _torch("lru_cache_on_method"),
    _torch(
        "loss_with_graph",
        # the batch, and the activation that the backward pass needs: 64 x 256 floats
        # each; the loss itself: one block
        per_run=2 * 64 * 256 * 4 + 512,
        twin=WARM_UP,
        why="the twin still sees cuBLAS's workspace come, once",
    ),
    _torch("forward_hook"),
    _torch(
        "reference_cycle",
        outcome="collectable",
        why="only the cyclic collector frees it: warned about, not failed",
    ),
    _torch("exception_frames"),
    _torch(
        "after_a_failure",
        why="the failed test before it is not judged, and nobody else is blamed",
    ),
    _torch("pinned", "torch.pinned", device=HOST),
    _torch(
        "cublas_workspace",
        twin=WARM_UP,
        why="the library's workspace comes with the first product and stays",
    ),
    _torch(
        "pool_growth",
        twin=WARM_UP,
        per_run=512,
        why="what the pool keeps after the first run it never needs again",
    ),
    _torch(
        "private_pool",
        "torch.private_pools",
        per_run=20 * MIB,
        why="a graph's pool: nothing allocated, one segment reserved for each",
    ),
    _torch("raw_driver", "nvml.process", per_run=4 * MIB),
    _torch(
        "equal_size_swap",
        why="the first run frees one and leaks one: its balance is nought",
    ),
    _torch("stream_deferred_free", simulator_only=True),
    _torch("other_tenant", simulator_only=True),
    _torch("growing_tenant", simulator_only=True),
    _torch("hidden_process_memory", simulator_only=True),
    _torch("delayed_free", "nvml.process", per_run=4 * MIB, simulator_only=True),
    _torch(
        "device_lost",
        "",
        outcome="unconfirmed",
        judged=-2,
        simulator_only=True,
        why="nothing can be read and no run repeated from then on: no leak is claimed",
    ),
    _torch("nvml_fails", simulator_only=True),
    _torch("fork"),
    _torch("session_model"),
    _torch("second_device", device=SECOND),
    _torch("mig", device=MIG, mig=True, simulator_only=True),
)


def _cupy(name: str, counter: str = "cupy.used", **said: object) -> Scenario:
    return Scenario(environment="cupy", name=name, counter=counter, **said)  # type: ignore[arg-type]


CUPY = (
    _cupy("global_list"),
    _cupy(
        "stream_arenas",
        per_run=512,
        twin=WARM_UP,
        why="an arena for each stream, filled once",
    ),
    _cupy("pinned", "cupy.pinned", device=HOST),
    _cupy("raw_driver", "nvml.process", per_run=4 * MIB),
    _cupy("second_device", device=SECOND),
    _cupy(
        "temporaries",
        twin=WARM_UP,
        why="compiling the first kernel imports what later ones use",
    ),
)
CUPY_13 = tuple(dataclasses.replace(one, environment="cupy13") for one in CUPY)


def _extra(library: str, name: str, counter: str, **said: object) -> Scenario:
    return Scenario(
        environment="extras",
        library=library,
        name=name,
        counter=counter,
        **said,  # type: ignore[arg-type]
    )


EXTRAS = (
    _extra(
        "numba",
        "two_queues",
        "numba.allocations",
        per_run=1,
        why="an array's free waits in the memory manager's queue",
    ),
    _extra(
        "jax",
        "preallocation",
        "jax.allocated",
        why="the driver sees three quarters of the device, whatever happens",
    ),
    _extra(
        "onnxruntime",
        "session_per_request",
        "onnxruntime.sessions",
        device=HOST,
        per_run=1,
    ),
    _extra("onnxruntime", "value_kept", "onnxruntime.values", device=HOST, per_run=1),
    _extra(
        "onnxruntime",
        "arena",
        "onnxruntime.bindings",
        device=HOST,
        per_run=1,
        twin=WARM_UP,
        why="the arena grows, is shrunk, and leaks nothing",
    ),
    _extra("rmm", "buffer_kept", "rmm.allocated"),
)

SCENARIOS = TORCH + CUPY + CUPY_13 + EXTRAS
