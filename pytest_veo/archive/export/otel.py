"""A run as OpenTelemetry metrics, through the SDK.

Where they go is said as everywhere, by `OTEL_EXPORTER_OTLP_ENDPOINT` and its kin.
Names follow the semantic conventions where there are any (`test.case.name`,
`vcs.ref.head.revision`), units are UCUM's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from pytest_veo.archive.export import run as rows
from pytest_veo.errors import ArchiveError
from pytest_veo.errors import MissingDependency
from pytest_veo.units import Unit


if TYPE_CHECKING:
    from pytest_veo.archive.store import Run


_UNITS = {
    Unit.BYTES.value: "By",
    Unit.COUNT.value: "{object}",
    Unit.NANOSECONDS.value: "ns",
}
_TIMEOUT_MS = 30_000


def push(found: Run, endpoint: str | None = None) -> int:
    """Send a run by OTLP over HTTP.

    Args:
        found: the run.
        endpoint: URL of the collector's `v1/metrics`; None: as the environment says.

    Returns:
        How many figures were sent.

    Raises:
        ArchiveError: the collector did not take them.
        MissingDependency: the SDK or its exporter is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import (
            OTLPMetricExporter,
        )
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.metrics.export import MetricExportResult
    except ImportError:
        raise _missing() from None
    reader = InMemoryMetricReader()
    count = measure(found, reader)
    figures = reader.get_metrics_data()
    if figures is None:
        raise ArchiveError(f"the run {found.header.run_id} has no figures to send")
    exporter = OTLPMetricExporter(endpoint=endpoint)
    try:
        result = exporter.export(figures, timeout_millis=_TIMEOUT_MS)
    finally:
        exporter.shutdown()
    if result is not MetricExportResult.SUCCESS:
        place = endpoint or "the endpoint of OTEL_EXPORTER_OTLP_ENDPOINT"
        raise ArchiveError(f"the collector at {place} did not take the metrics")
    return count


def measure(found: Run, reader: Any) -> int:
    """Record a run's figures where a metric reader finds them.

    Args:
        found: the run.
        reader: an OpenTelemetry metric reader, not in use elsewhere.

    Returns:
        How many figures there are.

    Raises:
        MissingDependency: the SDK is not installed.
    """
    try:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.resources import Resource
    except ImportError:
        raise _missing() from None
    provider = MeterProvider(
        metric_readers=[reader],
        resource=Resource.create(_resource(found)),
        views=_views(len(found.records)),
        shutdown_on_exit=False,
    )
    meter = provider.get_meter("pytest_veo")
    gauges: dict[str, Any] = {}
    count = 0
    for name, unit, value, attributes in _figures(found):
        if name not in gauges:
            gauges[name] = meter.create_gauge(name, unit=unit)
        gauges[name].set(value, attributes)
        count += 1
    return count


def _missing() -> MissingDependency:
    return MissingDependency("opentelemetry-sdk", "export", "OpenTelemetry metrics")


def _views(tests: int) -> list[Any]:
    """Room for every test: the SDK would drop what is above two thousand."""
    from opentelemetry.sdk.metrics.view import View

    room = max(2000, 64 * tests)
    try:
        return [View(instrument_name="*", aggregation_cardinality_limit=room)]
    except TypeError:
        return []  # an SDK without that limit


def _resource(found: Run) -> dict[str, str]:
    names = {
        "run_id": "cicd.pipeline.run.id",
        "commit": "vcs.ref.head.revision",
        "branch": "vcs.ref.head.name",
        "gpu": "veo.gpu",
        "driver": "veo.driver",
        "python": "process.runtime.version",
    }
    known = {
        names[name]: value for name, value in rows.origin(found.header).items() if value
    }
    return {"service.name": "pytest-veo", **known}


def _figures(found: Run) -> Any:
    for record in found.records:
        test = {"test.case.name": record.nodeid}
        verdict = {**test, "veo.verdict": record.verdict.outcome.value}
        yield "veo.test.duration", "s", record.duration_ns / 1e9, verdict
        for growth in rows.growths(record):
            where = {**test, "veo.device": growth.device}
            name = f"veo.{growth.counter}.growth"
            yield name, _UNITS[growth.unit], growth.value, where
        for again in rows.per_runs(record):
            where = {**test, "veo.device": again.device}
            name = f"veo.{again.counter}.growth_per_run"
            yield name, _UNITS[again.unit], again.value, where
        for frame in rows.frame_times(record):
            statistic = frame.statistic.removesuffix("_ns")
            where = {**test, "veo.series": frame.series, "veo.statistic": statistic}
            yield "veo.frame_time", "s", frame.value_ns / 1e9, where
