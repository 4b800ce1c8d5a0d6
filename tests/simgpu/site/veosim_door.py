"""Lets CuPy (and JAX's plugin) into the simulated driver; runs in the child process.

CuPy's CUDA runtime is linked statically, but its Cython modules call each other
through a table of C functions, filled when they are imported. The functions in that
table are replaced by the simulator's before CuPy looks at it. No file of CuPy's is
changed, and CuPy's own `check_status` raises its errors.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import re
from types import ModuleType
from typing import Any


@dataclasses.dataclass(frozen=True)
class Gap:
    """A function that CuPy has and the door leaves to CuPy's own runtime."""

    module: str
    function: str
    reason: str


gaps: list[Gap] = []
"""Filled by `open_cupy`."""

_kept: list[object] = []  # what the tables point to must outlive the process
_C_TYPES: dict[str, Any] = {
    "int": ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "size_t": ctypes.c_size_t,
    "intptr_t": ctypes.c_ssize_t,
    "float": ctypes.c_float,
    "PyObject *": ctypes.py_object,
}


@dataclasses.dataclass(frozen=True)
class _Signature:
    returns: Any
    arguments: tuple[Any, ...]
    skips_dispatch: bool
    optional: int

    @classmethod
    def parse(cls, text: str) -> _Signature:
        """From Cython's own spelling.

        Raises:
            KeyError: a type that the door does not know.
        """
        found = re.fullmatch(r"(.*?)\s*\((.*)\)", text)
        if found is None:
            raise KeyError(text)
        words = [word.strip() for word in found[2].split(",")]
        plain = [
            word
            for word in words
            if word != "void" and "__pyx_skip" not in word and "optional" not in word
        ]
        is_object = found[1].startswith("struct __pyx_obj")
        return cls(
            _C_TYPES["PyObject *" if is_object else found[1]],
            tuple(_C_TYPES[word] for word in plain),
            any("__pyx_skip" in word for word in words),
            sum("optional" in word for word in words),
        )


def _capsules() -> Any:
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return api


def _replace(module: ModuleType, library: ctypes.PyDLL, prefix: str) -> None:
    api = _capsules()
    table: dict[str, object] = vars(module)["__pyx_capi__"]
    short = module.__name__.rpartition(".")[2]
    for name, capsule in list(table.items()):
        signature = api.PyCapsule_GetName(capsule)
        if b"(" not in signature:
            continue  # a variable
        function = getattr(library, prefix + name, None)
        if function is None:
            gaps.append(Gap(short, name, "not simulated"))
            continue
        try:
            parsed = _Signature.parse(signature.decode())
        except KeyError as unknown:
            gaps.append(Gap(short, name, f"signature with {unknown}"))
            continue
        _kept.append(signature)
        address = ctypes.cast(function, ctypes.c_void_p)
        table[name] = api.PyCapsule_New(address, signature, None)
        if not name.startswith("_"):
            setattr(module, name, _callable(name, function, parsed))


def _callable(name: str, function: Any, signature: _Signature) -> Any:
    function.restype = signature.returns
    skip = (ctypes.c_int,) if signature.skips_dispatch else ()
    optional = (ctypes.c_void_p,) * signature.optional
    function.argtypes = [*signature.arguments, *skip, *optional]
    tail = (0,) * len(skip) + (None,) * len(optional)
    wanted = len(signature.arguments)

    def call(*arguments: object) -> Any:
        return function(*arguments[:wanted], *tail)

    call.__name__ = name
    return call


def open_cupy() -> None:
    """Replace what CuPy calls of the CUDA runtime and driver. Before `import cupy`."""
    build = os.environ["VEOSIM_BUILD"]
    library = ctypes.PyDLL(os.path.join(build, "libveosim-cupy.so"))  # noqa: PTH118
    import cupy_backends.cuda.api.driver as driver
    import cupy_backends.cuda.api.runtime as runtime

    api = _capsules()
    check = runtime.__pyx_capi__["check_status"]
    pointer = api.PyCapsule_GetPointer(check, api.PyCapsule_GetName(check))
    ctypes.c_void_p.in_dll(library, "cupy_check_status").value = pointer
    attributes = ctypes.c_void_p.in_dll(library, "cupy_pointer_attributes")
    attributes.value = id(runtime.PointerAttributes)
    _replace(runtime, library, "cupy_runtime_")
    _replace(driver, library, "cupy_driver_")


def open_jax(hardware_utils: ModuleType) -> None:
    """JAX looks for /dev/nvidia* before it looks at the driver; answer for it."""
    vars(hardware_utils)["has_visible_nvidia_gpu"] = lambda: True
