from __future__ import annotations

import pathlib
import sys


# The bench is a package of the tests (`tests.simgpu`), found from the root.
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from tests.simgpu.fixtures import nurseries
from tests.simgpu.fixtures import sim
from tests.simgpu.fixtures import sim_build


__all__ = ["nurseries", "sim", "sim_build"]
