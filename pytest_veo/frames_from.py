"""Captures that markers name with `frames_from`, and readers that plugins give."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from typing import NamedTuple

import pytest

from pytest_veo.errors import BadSetting
from pytest_veo.errors import VeoError


if TYPE_CHECKING:
    from pytest_veo.frames.collection import Frames


class NamedCapture(NamedTuple):
    """A file whose frames a marker wants judged."""

    path: Path
    series: str | None
    """What to call its series; None leaves the file's own name."""
    choice: dict[str, object]
    """Which of its series: `process`, `swapchain`, `event`."""


def take_capture(
    config: pytest.Config, series: str | None, arguments: dict[str, object]
) -> NamedCapture | None:
    """The capture that a marker names; its arguments are taken out of the others."""
    path = arguments.pop("frames_from", None)
    choice: dict[str, object] = {
        name: arguments.pop(name)
        for name in ("process", "swapchain")
        if name in arguments
    }
    if path is None:
        if choice:
            name = next(iter(choice))
            raise BadSetting(f"{name} chooses among the series of frames_from: name it")
        return None
    if not isinstance(path, str | Path):
        raise BadSetting(f"frames_from={path!r}: it must be the path of a capture")
    if arguments.get("event") is not None:
        choice["event"] = arguments["event"]
    return NamedCapture(config.rootpath / path, series, choice)


def add_captures(frames: Frames, captures: Sequence[NamedCapture]) -> None:
    """Read the files and let their series be judged.

    Raises:
        VeoError: a file that cannot be read, or a choice that is not in it.
        OSError: the same, told by the system.
    """
    # By name: the room of the readers is not needed by those who record.
    registry = importlib.import_module("pytest_veo.readers.registry")
    for capture in captures:
        series = registry.read_series(capture.path, **capture.choice)
        name = capture.series or series.name
        frames.use(dataclasses.replace(series, name=name))


def register_readers(config: pytest.Config) -> None:
    """Take the readers that other plugins and conftest files give.

    Raises:
        pytest.UsageError: one of them is no reader.
    """
    # The hook is declared by the other plugin, which may be switched off.
    hook = getattr(config.hook, "pytest_veo_readers", None)
    if hook is None or not hook.get_hookimpls():
        return
    from pytest_veo.readers import registry

    for given in hook(config=config):
        for reader in given or ():
            try:
                registry.register_reader(reader)
            except VeoError as error:
                raise pytest.UsageError(f"pytest_veo_readers: {error}") from None
            # Another session in this process has its own.
            config.add_cleanup(partial(registry.unregister_reader, reader))
