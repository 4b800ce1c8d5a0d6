"""A run as a Prometheus textfile, for the node exporter's collector or a push gateway.

Units are Prometheus' base units, bytes and seconds.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING
from typing import Any

from pytest_veo.archive.export import run as rows
from pytest_veo.errors import MissingDependency
from pytest_veo.units import Unit


if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_veo.archive.store import Run


_FIGURE = ["test", "counter", "device"]


def text(found: Run) -> str:
    """The textfile.

    Raises:
        MissingDependency: `prometheus_client` is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry
        from prometheus_client import generate_latest
    except ImportError:
        raise MissingDependency(
            "prometheus-client", "export", "the Prometheus textfile"
        ) from None

    class Collector:
        def collect(self) -> Iterator[Any]:
            yield from _families(found)

    registry = CollectorRegistry()
    registry.register(Collector())
    written: bytes = generate_latest(registry)
    return written.decode()


def _families(found: Run) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.core import InfoMetricFamily

    info = InfoMetricFamily("veo_run", "The run that the figures are of.")
    info.add_metric([], rows.origin(found.header))
    yield info
    started = GaugeMetricFamily("veo_run_started_timestamp_seconds", "Its start.")
    started.add_metric([], _seconds(found.header.started_at))
    yield started
    verdict = GaugeMetricFamily(
        "veo_test_verdict", "1 for the verdict.", labels=["test", "verdict"]
    )
    duration = GaugeMetricFamily(
        "veo_test_duration_seconds", "Duration of the test.", labels=["test"]
    )
    for record in found.records:
        verdict.add_metric([record.nodeid, record.verdict.outcome.value], 1)
        duration.add_metric([record.nodeid], record.duration_ns / 1e9)
    yield verdict
    yield duration
    yield from _growths(found)
    frames = GaugeMetricFamily(
        "veo_frame_time_seconds",
        "Statistics of frame time.",
        labels=["test", "series", "statistic"],
    )
    for record in found.records:
        for each in rows.frame_times(record):
            statistic = each.statistic.removesuffix("_ns")
            frames.add_metric(
                [each.nodeid, each.series, statistic], each.value_ns / 1e9
            )
    yield frames


def _growths(found: Run) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    for unit, suffix in ((Unit.BYTES, "bytes"), (Unit.COUNT, "objects")):
        first = GaugeMetricFamily(
            f"veo_growth_{suffix}", "Growth over a test's first run.", labels=_FIGURE
        )
        repeated = GaugeMetricFamily(
            f"veo_growth_per_run_{suffix}",
            "Growth of each further run.",
            labels=_FIGURE,
        )
        for record in found.records:
            for growth in rows.growths(record):
                if growth.unit == unit.value:
                    first.add_metric(list(growth[:3]), growth.value)
            for again in rows.per_runs(record):
                if again.unit == unit.value:
                    repeated.add_metric(list(again[:3]), again.value)
        yield first
        yield repeated


def _seconds(moment: str) -> float:
    return datetime.datetime.fromisoformat(moment).timestamp()
