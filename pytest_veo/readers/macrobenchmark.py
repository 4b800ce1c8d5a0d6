"""Jetpack Macrobenchmark's JSON: durations of frames, without stamps.

`frameDurationCpuMs` says how long the processor worked on each frame and
`frameOverrunMs` by how much a deadline was missed (below zero: kept). Neither is the
time from frame to frame, so nothing here can be judged for jitter.
"""

from __future__ import annotations

from typing import Any
from typing import ClassVar

import numpy as np

from pytest_veo.frames.figures import Figure
from pytest_veo.frames.series import Clock
from pytest_veo.frames.series import DropCounter
from pytest_veo.frames.series import Event
from pytest_veo.readers.capture import Capture
from pytest_veo.readers.capture import CapturedSeries
from pytest_veo.readers.json_walk import Object
from pytest_veo.readers.json_walk import head_has
from pytest_veo.readers.json_walk import is_json
from pytest_veo.readers.json_walk import number_of
from pytest_veo.readers.json_walk import numbers
from pytest_veo.readers.json_walk import text_of
from pytest_veo.readers.json_walk import to_ns
from pytest_veo.readers.present_checks import LONGEST_FRAME_NS
from pytest_veo.readers.source import Source


_PERCENTILES = ("P50", "P90", "P95", "P99")
_UNITS = {"Ms": "ms", "Us": "us", "Ns": "ns", "Count": "frames"}


class MacrobenchmarkReader:
    """`*-benchmarkData.json`."""

    name: ClassVar[str] = "macrobenchmark"

    def claims(self, source: Source) -> bool:
        """A context and a list of benchmarks with metrics."""
        if not is_json(source) or not head_has(source, "benchmarks"):
            return False
        return head_has(source, "metrics") or head_has(source, "sampledMetrics")

    def read(self, source: Source) -> Capture:
        """Durations a benchmark and iteration, and deadlines missed."""
        document = source.document()
        benchmarks = document.get("benchmarks") if isinstance(document, dict) else None
        if not isinstance(benchmarks, list) or not benchmarks:
            raise source.error("no benchmarks", column="benchmarks")
        series: list[CapturedSeries] = []
        counters: list[DropCounter] = []
        summary: list[Figure] = []
        for number, benchmark in enumerate(benchmarks):
            path = f"benchmarks[{number}]"
            if not isinstance(benchmark, dict):
                raise source.error("no benchmark", column=path)
            name = text_of(benchmark, "name") or path
            summary.extend(_figures(benchmark, name))
            made, missed = _sampled(source, benchmark, path, name)
            series.extend(made)
            counters.extend(missed)
        return Capture(
            file=source.name,
            format=self.name,
            series=tuple(series),
            counters=tuple(counters),
            summary=tuple(summary),
            notes=(
                "durations of frames without stamps: missed deadlines can be told, the "
                "pace of frames not",
            ),
            facts=_facts(document),
        )


def _facts(document: Object) -> tuple[tuple[str, str], ...]:
    context = document.get("context")
    build = context.get("build") if isinstance(context, dict) else None
    names = ("brand", "model", "device", "fingerprint")
    return tuple((n, text_of(build, n)) for n in names if text_of(build, n))


def _unit(metric: str) -> str:
    return next((unit for end, unit in _UNITS.items() if metric.endswith(end)), "")


def _figures(benchmark: Object, name: str) -> list[Figure]:
    """What the library computed itself."""
    found: list[Figure] = []
    for group, keys in (
        ("metrics", ("minimum", "median", "maximum")),
        ("sampledMetrics", _PERCENTILES),
    ):
        metrics = benchmark.get(group)
        for metric, values in metrics.items() if isinstance(metrics, dict) else ():
            for key in keys:
                value = number_of(values, key) if isinstance(values, dict) else None
                if value is not None:
                    found.append(Figure(f"{name} {metric} {key}", value, _unit(metric)))
    return found


def _sampled(
    source: Source, benchmark: Object, path: str, name: str
) -> tuple[list[CapturedSeries], list[DropCounter]]:
    metrics = benchmark.get("sampledMetrics")
    if not isinstance(metrics, dict):
        return [], []
    series: list[CapturedSeries] = []
    for number, times in _runs(source, metrics, path, "frameDurationCpuMs"):
        place = f"{path}.sampledMetrics.frameDurationCpuMs.runs[{number}]"
        series.extend(_durations(source, times, place, f"{name} run {number + 1}"))
    counters: list[DropCounter] = []
    overruns = _runs(source, metrics, path, "frameOverrunMs")
    if overruns:
        joined = np.concatenate([times for _, times in overruns])
        missed = int((joined > 0).sum())
        counter = DropCounter(
            name=f"missed deadline ({name})", dropped=missed, total=joined.size
        )
        counters.append(counter)
    return series, counters


def _runs(
    source: Source, metrics: Object, path: str, metric: str
) -> list[tuple[int, np.ndarray[Any, np.dtype[np.float64]]]]:
    values = metrics.get(metric)
    if values is None:
        return []
    # Reports that were made smaller keep the percentiles only.
    runs = values.get("runs", []) if isinstance(values, dict) else None
    place = f"{path}.sampledMetrics.{metric}.runs"
    if not isinstance(runs, list):
        raise source.error("no list of runs", column=place)
    return [
        (number, numbers(source, run, f"{place}[{number}]"))
        for number, run in enumerate(runs)
    ]


def _durations(
    source: Source,
    times_ms: np.ndarray[Any, np.dtype[np.float64]],
    path: str,
    name: str,
) -> list[CapturedSeries]:
    if not times_ms.size:
        return []
    times_ns = to_ns(source, times_ms, 1e6, path)
    if bool((times_ns < 0).any()):
        place = int(np.argmax(times_ns < 0))
        raise source.error("a duration below zero", column=f"{path}[{place}]")
    if bool((times_ns >= LONGEST_FRAME_NS).any()):
        place = int(np.argmax(times_ns))
        hours = times_ns[place] / 3.6e12
        raise source.error(f"a frame of {hours:.1f} hours", column=f"{path}[{place}]")
    return [
        CapturedSeries(
            # There are no stamps: laid end to end, and marked as no series of frames.
            t_ns=np.cumsum(times_ns),
            event=Event.FRAME,
            clock=Clock.TOOL,
            name=name,
            source=source.name,
            tool="macrobenchmark",
            sampled=True,
            frame_times_ns=times_ns,
        )
    ]


READER = MacrobenchmarkReader()
