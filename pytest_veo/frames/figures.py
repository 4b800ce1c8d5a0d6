"""The figures other tools print, under their own names and by their own formulas.

"1 % low" means something else in every tool. These are for comparing with numbers
people already have; a budget names an exact statistic instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pytest_veo.errors import FramesError


Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure as its tool names it."""

    name: str
    value: float
    unit: str
    """`fps`, `ms`, `%`, `frames`, `1/min`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameTimes:
    """What figures are computed from.

    Attributes:
        frame_times_ns: frame times in order, shape (n,).
        end_ns: the last frame's stamp, counted from where the tool counts from.
    """

    frame_times_ns: npt.NDArray[np.int64]
    end_ns: int = 0


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool whose figures are known."""

    name: str
    title: str
    why: str
    """How its figures come about, and so why they differ from the others'."""
    compute: Callable[[Floats, int], tuple[Figure, ...]]


def figures_of(times: FrameTimes, tool: str) -> tuple[Figure, ...]:
    """The figures of one tool.

    Args:
        times: frame times; those that are not above 0 are left out, as the tools do.
        tool: a name from `TOOLS`; `mangohud` is the newest release's formula.

    Raises:
        FramesError: no such tool, or no frame time above 0.
    """
    found = tool_named(tool)
    ms = times.frame_times_ns / 1e6
    ms = ms[ms > 0]
    if not ms.size:
        raise FramesError(f"{tool}: no frame time above 0 to compute figures from")
    return found.compute(ms, times.end_ns)


def tool_named(name: str) -> Tool:
    """The tool with this name.

    Raises:
        FramesError: there is none; the message lists those there are.
    """
    wanted = _ALIASES.get(name.lower(), name.lower())
    for tool in TOOLS:
        if tool.name == wanted:
            return tool
    known = ", ".join(tool.name for tool in TOOLS)
    raise FramesError(f"no figures of {name!r} are known; there are {known}")


def _fps(ms: float | np.floating[npt.NBitBase]) -> float:
    return float(1000.0 / ms)


def _slowest(ms: Floats, count: int) -> Floats:
    """The `count` longest frame times, longest first."""
    count = min(count, ms.size)
    part = np.partition(ms, ms.size - count)[ms.size - count :]
    return np.sort(part)[::-1]


def _frameview(ms: Floats, end_ns: int) -> tuple[Figure, ...]:
    n = ms.size
    # Floating point would put 0.29 * 100 below 29.
    slowest = _slowest(ms, n // 10 + 1)

    def at(permille: int) -> float:
        return _fps(slowest[n * permille // 1000])

    def low(permille: int) -> float:
        return _fps(slowest[: n * permille // 1000 + 1].mean())

    return (
        Figure("Avg FPS", _fps(ms.mean()), "fps"),
        Figure("1% Low FPS", low(10), "fps"),
        Figure("0.1% Low FPS", low(1), "fps"),
        Figure("0.1% FPS", at(1), "fps"),
        Figure("1% FPS", at(10), "fps"),
        Figure("5% FPS", at(50), "fps"),
        Figure("10% FPS", at(100), "fps"),
        Figure("Min FPS", _fps(ms.max()), "fps"),
        Figure("Max FPS", _fps(ms.min()), "fps"),
    )


def _presentmon(ms: Floats, end_ns: int) -> tuple[Figure, ...]:
    p95, p99 = np.quantile(ms, [0.95, 0.99])
    return (
        Figure("Average FPS", _fps(ms.mean()), "fps"),
        Figure("Minimum FPS", _fps(ms.max()), "fps"),
        Figure("1st Percentile FPS", _fps(p99), "fps"),
        Figure("5th Percentile FPS", _fps(p95), "fps"),
        Figure("Maximum FPS", _fps(ms.min()), "fps"),
    )


def _capframex(ms: Floats, end_ns: int) -> tuple[Figure, ...]:
    fps = 1000.0 / ms
    shares = [0.001, 0.002, 0.01, 0.05, 0.5, 0.95, 0.99]
    names = ("P0.1", "P0.2", "P1", "P5", "Median", "P95", "P99")
    quantiles = np.quantile(fps, shares, method="median_unbiased")
    return (
        Figure("Average", _fps(ms.mean()), "fps"),
        *(Figure(n, float(q), "fps") for n, q in zip(names, quantiles, strict=True)),
        Figure("1% Low Average", _mean_beyond(ms, 0.99), "fps"),
        Figure("0.1% Low Average", _mean_beyond(ms, 0.999), "fps"),
        Figure("1% Low Integral", _integral(ms, 0.01), "fps"),
        Figure("0.1% Low Integral", _integral(ms, 0.001), "fps"),
        Figure("Max", float(fps.max()), "fps"),
        Figure("Min", float(fps.min()), "fps"),
        Figure("Stuttering time", _stutter_time(ms), "%"),
        # The count is held against the plain mean, not the moving one.
        Figure("Stuttering count", float(100 * (ms > 2.5 * ms.mean()).mean()), "%"),
    )


def _mean_beyond(ms: Floats, share: float) -> float:
    limit = np.quantile(ms, share, method="median_unbiased")
    return _fps(ms[ms >= limit].mean())


def _integral(ms: Floats, share: float) -> float:
    """The frame time at which the slowest frames have taken `share` of all time."""
    slowest = np.sort(ms)[::-1]
    reached = np.cumsum(slowest) >= share * ms.sum()
    return _fps(slowest[int(np.argmax(reached))])


def _stutter_time(ms: Floats, factor: float = 2.5) -> float:
    """Share of time spent in frames above `factor` times the moving average."""
    window = max(round(10 * float(np.sqrt(ms.mean()))), 1)
    calm = ms.copy()
    # A spike does not raise the average that later frames are held against.
    spikes = ms[1:] > 3 * ms[:-1]
    calm[1:][spikes] = ms[:-1][spikes]
    sums = np.concatenate(([0.0], np.cumsum(calm)))
    last = np.arange(1, ms.size + 1)
    first = np.maximum(last - window, 0)
    average = (sums[last] - sums[first]) / (last - first)
    return float(100 * ms[ms > factor * average].sum() / ms.sum())


def _mangohud(ms: Floats, end_ns: int) -> tuple[Figure, ...]:
    # Since 0.8 the positions are computed in single precision.
    slowest = np.sort(ms)[::-1]

    def at(share: float) -> float:
        place = np.float32(share) * np.float32(ms.size) - np.float32(1)
        return _fps(slowest[max(int(place), 0)])

    return (
        Figure("0.1% Min FPS", at(0.001), "fps"),
        Figure("1% Min FPS", at(0.01), "fps"),
        Figure("97% Percentile FPS", at(0.97), "fps"),
        Figure("Average FPS", _fps(ms.mean()), "fps"),
        Figure("Average Frame Time", float(ms.mean()), "ms"),
    )


def _mangohud_07(ms: Floats, end_ns: int) -> tuple[Figure, ...]:
    def low(permille: int) -> float:
        return _fps(_slowest(ms, -(-ms.size * permille // 1000)).mean())

    return (
        Figure("0.1% Min FPS", low(1), "fps"),
        Figure("1% Min FPS", low(10), "fps"),
        Figure("Average FPS", _fps(ms.mean()), "fps"),
    )


def _mangohud_06(ms: Floats, end_ns: int) -> tuple[Figure, ...]:
    fps = 1000.0 / ms

    def low(permille: int) -> float:
        return float((1000.0 / _slowest(ms, -(-ms.size * permille // 1000))).mean())

    return (
        Figure("0.1% Min FPS", low(1), "fps"),
        Figure("1% Min FPS", low(10), "fps"),
        Figure("Average FPS", float(fps.mean()), "fps"),
    )


def _ocat(ms: Floats, end_ns: int) -> tuple[Figure, ...]:
    shares = (0.1, 1, 5, 25, 75, 95, 99, 99.9)
    quantiles = np.quantile(ms, np.array(shares) / 100)
    average = ms.size / (end_ns / 1e9) if end_ns > 0 else _fps(ms.mean())
    return (
        Figure("Average FPS (Application)", average, "fps"),
        Figure("Average frame time", float(ms.mean()), "ms"),
        Figure("Min frame time", float(ms.min()), "ms"),
        Figure("Max frame time", float(ms.max()), "ms"),
        Figure("Median frame time", float(np.median(ms)), "ms"),
        Figure("Standard deviation", float(ms.std()), "ms"),
        *(
            Figure(f"{share:g}th percentile frame time", float(q), "ms")
            for share, q in zip(shares, quantiles, strict=True)
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Janks:
    """Which frames PerfDog calls jank and big jank, shape (n,) each."""

    jank: npt.NDArray[np.bool_]
    big: npt.NDArray[np.bool_]


def perfdog_janks(ms: Floats) -> Janks:
    """Frames beyond twice the mean of the three before, and beyond two film frames.

    Args:
        ms: frame times in milliseconds.
    """
    film_ms = 1000 / 24
    before = np.full(ms.size, np.inf)
    if ms.size > 3:
        before[3:] = (ms[:-3] + ms[1:-2] + ms[2:-1]) / 3
    jank = (ms > 2 * before) & (ms > 2 * film_ms)
    return Janks(jank, jank & (ms > 3 * film_ms))


def _perfdog(ms: Floats, end_ns: int) -> tuple[Figure, ...]:
    janks = perfdog_janks(ms)
    total = float(ms.sum())
    return (
        Figure("Avg(FPS)", _fps(ms.mean()), "fps"),
        Figure("Jank", int(janks.jank.sum()), "frames"),
        Figure("BigJank", int(janks.big.sum()), "frames"),
        Figure("Jank(/10min)", float(janks.jank.sum() * 600_000 / total), "1/10min"),
        Figure("Stutter", float(100 * ms[janks.jank].sum() / total), "%"),
    )


def _unreal(ms: Floats, end_ns: int) -> tuple[Figure, ...]:
    hitches = ms >= 60.0
    minutes = float(ms.sum()) / 60_000
    span_s, frames = float(ms.sum()) / 1000, ms.size
    slots = 60.0 * span_s
    missed = 100 * max(slots - frames, 0.0) / slots
    lost = float((ms[hitches] - 60.0).sum())
    return (
        Figure("AvgFPS", _fps(ms.mean()), "fps"),
        Figure("Hitches/Min", float(hitches.sum() / minutes), "1/min"),
        Figure("HitchTimePercent", 100 * lost / float(ms.sum()), "%"),
        Figure("MVP60", missed, "%"),
    )


def _android(ms: Floats, end_ns: int) -> tuple[Figure, ...]:
    interval_ms = 1000 / 60
    shares = (50, 90, 95, 99)
    ordered = np.sort(ms)
    at = [_histogram_edge_ms(int(ordered[ms.size * s // 100])) for s in shares]
    janky = int((ms > interval_ms).sum())
    return (
        Figure("Total frames rendered", ms.size, "frames"),
        Figure("Janky frames", janky, "frames"),
        Figure("Janky frames share", 100 * janky / ms.size, "%"),
        *(
            Figure(f"{s}th percentile", v, "ms")
            for s, v in zip(shares, at, strict=True)
        ),
    )


def _histogram_edge_ms(ms: int) -> int:
    """The lower edge of the bar of gfxinfo's histogram that holds `ms`.

    Bars are 1 ms wide from 5 ms on, 2 ms from 32, 4 ms from 48, 50 ms from 150.
    """
    for start, width in ((150, 50), (48, 4), (32, 2)):
        if ms >= start:
            return start + (ms - start) // width * width
    return max(ms, 5)


TOOLS = (
    Tool(
        "frameview",
        "NVIDIA FrameView",
        "1% Low is the mean of the slowest floor(n/100)+1 frames; 1% FPS is the frame "
        "at that rank; presents that were never displayed count",
        _frameview,
    ),
    Tool(
        "presentmon",
        "PresentMon Capture Application",
        "1st Percentile FPS is the 99th percentile of frame time, interpolated, as fps",
        _presentmon,
    ),
    Tool(
        "capframex",
        "CapFrameX",
        "P1 is a percentile of fps (not of frame time); the integral low walks the "
        "slowest frames until they fill 1 % of all time, so one freeze decides it",
        _capframex,
    ),
    Tool(
        "mangohud:0.8",
        "MangoHud 0.8 and later",
        "1% Min is one frame: the one at rank n/100-1 of the slowest; 97% Percentile "
        "is among the fastest frames, not a slow tail",
        _mangohud,
    ),
    Tool(
        "mangohud:0.7",
        "MangoHud 0.7",
        "1% Min is the mean time of the slowest ceil(n/100) frames",
        _mangohud_07,
    ),
    Tool(
        "mangohud:0.6",
        "MangoHud 0.6.9 and earlier",
        "averages fps, not times: short frames weigh most, so the result is too high",
        _mangohud_06,
    ),
    Tool(
        "ocat",
        "OCAT",
        "Average FPS divides by the last stamp, so time before the first frame counts; "
        "percentiles are of frame time, interpolated",
        _ocat,
    ),
    Tool(
        "perfdog",
        "PerfDog",
        "no percentile: jank is a frame beyond twice the mean of the three before it "
        "and beyond 83.3 ms",
        _perfdog,
    ),
    Tool(
        "unreal",
        "Unreal PerfReportTool",
        "no percentile: hitches of 60 ms and more, and refreshes missed at 60 Hz",
        _unreal,
    ),
    Tool(
        "android",
        "Android gfxinfo",
        "percentiles in whole milliseconds; janky is any frame over 16.7 ms",
        _android,
    ),
)
_ALIASES = {"mangohud": "mangohud:0.8", "frame view": "frameview", "cx": "capframex"}
