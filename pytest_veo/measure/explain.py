"""A few more runs of a confirmed leak, traced: where it is allocated, who holds it."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
from typing import TYPE_CHECKING

from pytest_veo import tracemalloc_ext
from pytest_veo.evidence import text
from pytest_veo.evidence.collect import Collector


if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_veo.evidence.collect import Evidence
    from pytest_veo.measure.confirm import Runs


def explain(
    level: str,
    runs: int,
    *,
    rerunning: Callable[[], contextlib.AbstractContextManager[Runs]],
    rest: Callable[[], object],
) -> tuple[str, ...]:
    """The evidence as lines; why there is none, if a run fails.

    Args:
        level: `light` or `full`.
        runs: how many `rerunning` makes at once.
        rerunning: makes them.
        rest: brings the process to rest.
    """

    def collect(collector: Collector) -> Evidence | str:
        with rerunning() as rounds, contextlib.ExitStack() as stack:
            gc.unfreeze()
            rest()
            stack.callback(collector.abandon)  # also when somebody interrupts us
            collector.begin()
            why = rounds.run()
            if why:
                return why
            rest()
            return collector.end(runs)

    light = level == "light"
    found = collect(Collector("light" if light else "full", tracemalloc_ext))
    if isinstance(found, str):
        return (f"no evidence: {found}",)
    found = found.without_machinery()
    if light or not found.names_nothing or importlib.util.find_spec("memray") is None:
        return text.lines(found)
    native = collect(Collector("native"))
    return text.lines(found if isinstance(native, str) else native)
