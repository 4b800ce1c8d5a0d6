from __future__ import annotations

import ast
from pathlib import Path

import pytest


PACKAGE = Path(__file__).parent.parent / "pytest_veo"

# Imports point down only. Rooms that share a floor do not know each other.
FLOORS: dict[str, int] = {
    "errors": 0,
    "units": 0,
    "budget": 1,
    "verdict": 1,
    "memory": 2,
    "frames": 2,
    "probes": 3,
    "evidence": 3,
    "readers": 3,
    "telemetry": 3,
    "archive": 3,
    "tracemalloc_ext": 3,
    "report": 4,
    "hookspec": 5,
    "settings": 5,
    "measure": 5,
    "rerun": 5,
    "fixtures": 6,
    "frames_plugin": 6,
    "frames_cli": 6,
    "cli": 6,
    "plugin": 7,
    "testing": 7,
    "__init__": 7,
    "__main__": 7,
}
# Within one floor, these pairs may look at each other's values.
NEIGHBOURS = {
    ("memory", "verdict"),
    ("measure", "hookspec"),
    ("measure", "settings"),
    ("measure", "rerun"),
    ("rerun", "settings"),
    ("settings", "hookspec"),
}


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (
                [f"pytest_veo.{alias.name}" for alias in node.names]
                if node.module == "pytest_veo"
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "pytest_veo" and len(parts) > 1:
                found.add(parts[1])
    return found


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_imports_point_down(path: Path) -> None:
    room = room_of(path)
    assert room in FLOORS, f"{path.name}: give the room {room!r} a floor"
    for other in imports_of(path) - {room}:
        below = FLOORS[other] < FLOORS[room]
        assert below or (room, other) in NEIGHBOURS, f"{room} must not import {other}"
