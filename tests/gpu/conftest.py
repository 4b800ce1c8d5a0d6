from __future__ import annotations

from tests.simgpu.fixtures import sim
from tests.simgpu.fixtures import sim_build


__all__ = ["sim", "sim_build"]
