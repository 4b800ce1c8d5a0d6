"""Runs in the child: imports a framework once, then runs pytest sessions in forks.

A framework takes seconds to import and a scenario takes a tenth of one. No fork has
the device in use before its session begins: importing initialises nothing.

Reads a line of JSON for each session, `{"folder", "arguments", "settings", "mig"}`,
and answers `{"status": exit status}`; what the session wrote is in its folder.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any
from typing import NoReturn

import pytest

from tests.simgpu.driver import Sim


def _run(request: dict[str, Any]) -> NoReturn:
    """One session, in this fork."""
    os.chdir(request["folder"])
    os.environ.update(request["settings"])
    sys.path.insert(0, request["folder"])  # as `python -m pytest` has it
    output = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    null = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, null), (1, output), (2, output)):
        os.dup2(source, target)
    status = 70
    try:
        status = int(pytest.main(request["arguments"]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    """Serve until stdin ends."""
    importlib.import_module(sys.argv[1])
    sim = Sim.here()
    for line in sys.stdin:
        request = json.loads(line)
        sim.reset(devices=2)
        if request["mig"]:
            sim.device(0).mig_mode = 1
        child = os.fork()
        if child == 0:
            _run(request)
        _, status = os.waitpid(child, 0)
        answer = {"status": os.waitstatus_to_exitcode(status)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
