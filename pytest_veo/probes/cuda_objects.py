"""Live CUDA streams, events, graphs and textures, by the library that made them.

Each holds memory of the driver that no allocator reports. Found by walking the
collector's list, so at `read` only.
"""

from __future__ import annotations

import sys

from pytest_veo.probes.counted_types import CountedTypesProbe
from pytest_veo.probes.cuda_driver import DriverWatch


_LIBRARIES = ("torch.cuda", "cupy.cuda", "numba.cuda", "cuda.core")


class CudaObjectsProbe(CountedTypesProbe):
    """Counts objects that own something of the driver; wrappers are left out."""

    name = "cuda"
    places = {
        "torch_streams": ("torch.cuda", "Stream"),
        "torch_events": ("torch.cuda", "Event"),
        "torch_graphs": ("torch.cuda", "CUDAGraph"),
        "torch_pools": ("torch.cuda", "MemPool"),
        "cupy_streams": ("cupy.cuda", "Stream"),
        "cupy_events": ("cupy.cuda", "Event"),
        "cupy_graphs": ("cupy.cuda", "Graph"),
        "cupy_textures": ("cupy.cuda.texture", "TextureObject"),
        "cupy_surfaces": ("cupy.cuda.texture", "SurfaceObject"),
        "cupy_arrays": ("cupy.cuda.texture", "CUDAarray"),
        "numba_streams": ("numba.cuda.cudadrv.driver", "Stream"),
        "numba_events": ("numba.cuda.cudadrv.driver", "Event"),
        "core_streams": ("cuda.core", "Stream"),
        "core_events": ("cuda.core", "Event"),
        "core_buffers": ("cuda.core", "Buffer"),
    }

    def __init__(self, watch: DriverWatch | None = None) -> None:
        super().__init__()
        self._watch = watch or DriverWatch()
        self._was_active = False

    def is_active(self) -> bool:
        """Whether one is imported and this process has held a CUDA context."""
        if not self._was_active:
            is_imported = any(library in sys.modules for library in _LIBRARIES)
            self._was_active = is_imported and self._watch.has_any_context()
        return self._was_active
