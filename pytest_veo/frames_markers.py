"""What the marker `veo_jitter` of a test says: budgets, captures, a place in a grid.

numpy and the frames room are imported when a test has the marker, never before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import pytest

from pytest_veo.errors import BadSetting
from pytest_veo.errors import VeoError
from pytest_veo.frames_from import take_capture


if TYPE_CHECKING:
    from pytest_veo.frames.budget import JitterBudget
    from pytest_veo.frames.variants import Variant
    from pytest_veo.frames_from import NamedCapture


MARKER = "veo_jitter"
INI_DEFAULTS = "veo_jitter"


def read_markers(
    config: pytest.Config, item: pytest.Item
) -> tuple[dict[str | None, JitterBudget], list[NamedCapture]]:
    """The budget of each named series, under None that of all others; the captures.

    Markers of a class or module are defaults for those of its tests.

    Raises:
        pytest.UsageError: a marker makes no sense; the message names the test.
    """
    from pytest_veo.frames.arguments import budget_from
    from pytest_veo.frames.arguments import read_lines

    try:
        defaults = read_lines(config.getini(INI_DEFAULTS))
        asked: dict[str | None, dict[str, object]] = {}
        for marker in reversed(list(item.iter_markers(MARKER))):
            if marker.args:
                raise BadSetting(f"{marker.args[0]!r}: name every argument")
            series = _text("series", marker.kwargs.get("series"))
            arguments = {k: v for k, v in marker.kwargs.items() if k != "series"}
            asked.setdefault(series, dict(defaults)).update(arguments)
        captures = [
            capture
            for series, arguments in asked.items()
            if (capture := take_capture(config, series, arguments)) is not None
        ]
        budgets = {series: budget_from(given) for series, given in asked.items()}
    except VeoError as error:
        raise pytest.UsageError(f"{item.nodeid}: {MARKER}: {error}") from None
    return budgets, captures


def variant_of(item: pytest.Item) -> Variant | None:
    """Which cell of its grid a parametrized test is; None when it is not."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or not callspec.params:
        return None
    from pytest_veo.frames.variants import Variant

    return Variant(
        test=item.nodeid.removesuffix(f"[{callspec.id}]"),
        place=tuple(callspec.indices.values()),
        parameters=tuple(
            (name, _shown(value)) for name, value in callspec.params.items()
        ),
    )


def _shown(value: Any) -> str | int | float | bool | None:
    """A parameter as a record can carry it."""
    if value is None or isinstance(value, str | int | float):
        return value
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else type(value).__name__


def _text(name: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise BadSetting(f"{name}={value!r}: it must be a series' name")
    return value
