"""What the evidence must name for each leak: the line that allocated it, who holds it.

The line is the one of the scenario's file that asks the allocator; the holder is where
Python keeps the leak. Where C code allocates or holds, there is nothing to name, and
`why` tells how.
"""

from __future__ import annotations

import dataclasses

from tests.simgpu.scenarios.judging import judged
from tests.simgpu.scenarios.sessions import Session
from tests.simgpu.scenarios.table import Scenario


@dataclasses.dataclass(frozen=True, slots=True)
class Truth:
    """Of one leaky file."""

    line: int
    """0: no Python code allocates it."""
    holder: str
    """How the first chain begins, after the module's name; empty: nobody in Python."""
    why: str = ""


_CTYPES = "cudaMalloc through ctypes: no allocator, and no Python object, knows of it"
TRUTHS = {
    "torch-global_list": Truth(10, ".KEPT["),
    "torch-lru_cache_on_method": Truth(11, ".Model.table (lru_cache"),
    "torch-loss_with_graph": Truth(12, ".HISTORY["),
    "torch-forward_hook": Truth(12, ".MODEL._forward_hooks["),
    "torch-exception_frames": Truth(10, ".ERRORS["),
    "torch-after_a_failure": Truth(15, ".KEPT["),
    "torch-pinned": Truth(10, ".KEPT["),
    "torch-cublas_workspace": Truth(11, ".KEPT["),
    "torch-pool_growth": Truth(12, ".KEPT["),
    "torch-private_pool": Truth(12, ".GRAPHS["),
    "torch-raw_driver": Truth(0, "", _CTYPES),
    "torch-equal_size_swap": Truth(12, ".KEPT["),
    "torch-stream_deferred_free": Truth(22, ".KEPT["),
    "torch-other_tenant": Truth(16, ".KEPT["),
    "torch-growing_tenant": Truth(13, ".KEPT["),
    "torch-hidden_process_memory": Truth(23, ".KEPT["),
    "torch-delayed_free": Truth(0, "", _CTYPES),
    "torch-nvml_fails": Truth(24, ".KEPT["),
    "torch-fork": Truth(12, ".KEPT["),
    "torch-session_model": Truth(20, "fixture model (session)"),
    "torch-second_device": Truth(11, ".KEPT["),
    "torch-mig": Truth(10, ".KEPT["),
    "cupy-global_list": Truth(10, ".KEPT["),
    "cupy-stream_arenas": Truth(15, ".KEPT["),
    "cupy-pinned": Truth(12, ".KEPT["),
    "cupy-raw_driver": Truth(7, "", "an address is a number, and the test drops it"),
    "cupy-second_device": Truth(12, ".KEPT["),
    "cupy-temporaries": Truth(10, ".KEPT["),
    "numba-two_queues": Truth(14, ".KEPT["),
    "jax-preallocation": Truth(11, ".KEPT["),
    "onnxruntime-session_per_request": Truth(16, ".SESSIONS["),
    "onnxruntime-value_kept": Truth(14, ".KEPT["),
    "onnxruntime-arena": Truth(20, ".KEPT["),
    "rmm-buffer_kept": Truth(12, ".KEPT["),
}
"""By framework and name; only leaks are explained, so only leaks are here."""


def truth(scenario: Scenario) -> Truth:
    """What the evidence must name."""
    return TRUTHS[f"{scenario.framework}-{scenario.name}"]


@dataclasses.dataclass(frozen=True, slots=True)
class Named:
    """Whether the evidence names what it must; None where there is nothing to name."""

    line: bool | None
    holder: bool | None
    evidence: tuple[str, ...]


def named(session: Session, scenario: Scenario) -> Named:
    """The evidence of a leaky file held against the truth."""
    evidence = tuple(judged(session, scenario)["evidence"])
    wanted = truth(scenario)
    module = f"test_{scenario.name}"
    line = holder = None
    if wanted.line:
        line = _first(evidence, "allocated").startswith(f"{module}.py:{wanted.line} ")
    if wanted.holder:
        is_attribute = wanted.holder.startswith(".")
        begins = f"{module}{wanted.holder}" if is_attribute else wanted.holder
        holder = _first(evidence, "held by").startswith(begins)
    return Named(line, holder, evidence)


def _first(evidence: tuple[str, ...], label: str) -> str:
    return next((e[11:] for e in evidence if e.startswith(f"{label:<10} ")), "")
