"""Names of the devices in use, and the version of their driver.

Asks only libraries that the process has loaded already, and only what they answer
without being initialised by us: an idle driver says that it is idle, and stays so.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from pathlib import Path


_NAME_BYTES = 256
_VERSION = re.compile(r"\b\d{3,}\.\d+(?:\.\d+)*\b")
_LOADED = getattr(os, "RTLD_NOLOAD", 4) | getattr(os, "RTLD_LAZY", 1)


def describe() -> dict[str, str]:
    """Rows `gpu` and `driver`, as far as they are known."""
    rows = {"gpu": _gpus(), "driver": _driver()}
    return {name: value for name, value in rows.items() if value}


def _loaded(library: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(library, mode=_LOADED)
    except OSError:
        return None  # not in this process


def _answers(library: ctypes.CDLL, function: str, *given: object) -> bool:
    """Call a function; whether it is there, and says that all is well."""
    # Anything but 0 is an error; not to be initialised is the usual one.
    return hasattr(library, function) and getattr(library, function)(*given) == 0


def _gpus() -> str:
    cuda = _loaded("libcuda.so.1")
    if cuda is None:
        return _torch_gpus()
    count = ctypes.c_int()
    if not _answers(cuda, "cuDeviceGetCount", ctypes.byref(count)):
        return ""
    names = []
    for ordinal in range(count.value):
        name = ctypes.create_string_buffer(_NAME_BYTES)
        if _answers(cuda, "cuDeviceGetName", name, _NAME_BYTES, ordinal):
            names.append(name.value.decode(errors="replace"))
    return ", ".join(dict.fromkeys(names))


def _torch_gpus() -> str:
    """On ROCm the names are PyTorch's to tell."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not getattr(cuda, "is_initialized", bool)():
        return ""
    names = [cuda.get_device_name(number) for number in range(cuda.device_count())]
    return ", ".join(dict.fromkeys(names))


def _driver() -> str:
    nvml = _loaded("libnvidia-ml.so.1")
    if nvml is not None:
        version = ctypes.create_string_buffer(_NAME_BYTES)
        if _answers(nvml, "nvmlSystemGetDriverVersion", version, _NAME_BYTES):
            return version.value.decode(errors="replace")
    try:
        text = Path("/proc/driver/nvidia/version").read_text(errors="replace")
    except OSError:
        return ""  # no driver, or none of NVIDIA's
    found = _VERSION.search(text)
    return found[0] if found else ""
