"""Runs in a child: real pynvml over the simulated library, one call a line.

Reads `{"function": ..., "handle": [how, which] or null, "args": [...]}` and answers
`{"value": ...}` or `{"error": class, "code": number, "text": message}`.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any


def plain(value: Any) -> Any:
    """A value as JSON has it: structures and friendly objects become tables."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, ctypes.Structure):
        return {name: plain(getattr(value, name)) for name, *_ in value._fields_}
    if isinstance(value, ctypes.c_uint):  # pynvml hands some answers out as C has them
        return value.value
    if hasattr(value, "__dict__"):
        return {name: plain(item) for name, item in vars(value).items()}
    return value


def answer(pynvml: Any, request: dict[str, Any]) -> dict[str, Any]:
    """One call, and what came of it."""
    try:
        args = list(request["args"])
        if request["handle"]:
            how, which = request["handle"]
            if how == "mig":
                parent = pynvml.nvmlDeviceGetHandleByIndex(which)
                handle = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 0)
            else:
                handle = getattr(pynvml, f"nvmlDeviceGetHandleBy{how}")(which)
            args.insert(0, handle)
        value = getattr(pynvml, request["function"])(*args, **request["kwargs"])
    except pynvml.NVMLError as error:
        name = type(error).__name__
        return {"error": name, "code": error.value, "text": str(error)}
    except pynvml.NVMLLibraryMismatchError as error:  # no NVMLError: the binding's trap
        return {"error": type(error).__name__, "code": 13, "text": str(error)}
    return {"value": plain(value) if request["want"] else None}


def main() -> None:
    """Serve until stdin ends."""
    import pynvml

    for line in sys.stdin:
        print(json.dumps(answer(pynvml, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
