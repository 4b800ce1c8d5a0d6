from __future__ import annotations

import ast
from pathlib import Path

import pytest


PACKAGE = Path(__file__).parent.parent / "pytest_veo"

# Imports point down only. Rooms that share a floor do not know each other.
FLOORS: dict[str, int] = {
    "errors": 0,
    "units": 1,
    "options": 0,
    "budget": 2,
    "verdict": 2,
    "memory": 3,
    "frames": 3,
    "probes": 4,
    "evidence": 4,
    "readers": 4,
    "telemetry": 4,
    "archive": 4,
    "tracemalloc_ext": 4,
    "report": 5,
    "doctest_globals": 5,
    "silence": 5,
    "timeouts": 5,
    "unraisable": 5,
    "hookspec": 6,
    "settings": 6,
    "measure": 6,
    "rerun": 6,
    "frames_markers": 6,
    "frames_reports": 6,
    "frames_from": 5,
    "frames_ahead": 6,
    "frames_plugin": 7,
    "frames_cli": 7,
    "archiving": 7,
    "unchecked": 7,
    "results": 7,
    "baselines": 7,
    "publish": 7,
    "session": 7,
    "fixtures": 7,
    "cli": 7,
    "plugin": 8,
    "testing": 8,
    "__init__": 8,
    "__main__": 8,
}
# Within one floor, these pairs may look at each other's values.
NEIGHBOURS = {
    ("memory", "verdict"),
    ("measure", "hookspec"),
    ("measure", "settings"),
    ("measure", "rerun"),
    ("session", "results"),
    ("publish", "baselines"),
    ("session", "archiving"),
    ("baselines", "archiving"),
    ("archive", "telemetry"),
    ("results", "archiving"),
    ("unchecked", "archiving"),
    ("cli", "frames_cli"),
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
            is_room = len(parts) > 1 and not parts[1].startswith("__version")
            if parts[0] == "pytest_veo" and is_room:
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
