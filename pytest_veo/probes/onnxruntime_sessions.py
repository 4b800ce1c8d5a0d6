"""ONNX Runtime: live sessions and values.

What its arenas take on a device shows in this process's bytes at the driver; the
arenas never shrink by themselves.
"""

from __future__ import annotations

import sys

from pytest_veo.probes.counted_types import CountedTypesProbe


class OnnxruntimeSessionsProbe(CountedTypesProbe):
    """Counts the Python objects that own something of the runtime."""

    name = "onnxruntime"
    places = {
        "sessions": ("onnxruntime", "InferenceSession"),
        "values": ("onnxruntime", "OrtValue"),
        "bindings": ("onnxruntime", "IOBinding"),
    }

    def is_active(self) -> bool:
        """Whether ONNX Runtime is imported."""
        return "onnxruntime" in sys.modules

    def _discover(self) -> None:
        super()._discover()
        if self._kinds:
            reason = "ONNX Runtime tells Python nothing of it; see nvml.process"
            self._report(reason, counter="arena")
