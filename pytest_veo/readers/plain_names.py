"""What the name of a column of a plain table says: unit, event, stamps or durations."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_veo.frames.series import Event
from pytest_veo.readers.columns import Kind


_UNITS = {
    "ns": Kind.NANOSECONDS,
    "nsec": Kind.NANOSECONDS,
    "nanoseconds": Kind.NANOSECONDS,
    "us": Kind.MICROSECONDS,
    "usec": Kind.MICROSECONDS,
    "microseconds": Kind.MICROSECONDS,
    "ms": Kind.MILLISECONDS,
    "msec": Kind.MILLISECONDS,
    "milliseconds": Kind.MILLISECONDS,
    "s": Kind.SECONDS,
    "sec": Kind.SECONDS,
    "secs": Kind.SECONDS,
    "seconds": Kind.SECONDS,
}
_INTERVALS = {
    ("frame",),
    ("frame", "time"),
    ("frame", "times"),
    ("frametime",),
    ("frametimes",),
    ("frame", "interval"),
    ("frame", "duration"),
    ("interval",),
    ("delta",),
    ("dt",),
}
_EVENTS = (
    (("actual", "present"), Event.DISPLAY),
    (("displayed",), Event.DISPLAY),
    (("display",), Event.DISPLAY),
    (("scanout",), Event.DISPLAY),
    (("pixel", "out"), Event.DISPLAY),
    (("pixel", "visible"), Event.DISPLAY),
    (("operations", "end"), Event.GPU_END),
    (("dequeued",), Event.PRESENT),
    (("vblank",), Event.VSYNC),
    (("vsync",), Event.VSYNC),
    (("present",), Event.PRESENT),
    (("presented",), Event.PRESENT),
    (("gpu", "start"), Event.GPU_START),
    (("gpu", "begin"), Event.GPU_START),
    (("gpu", "end"), Event.GPU_END),
    (("gpu", "done"), Event.GPU_END),
    (("cpu", "start"), Event.CPU_START),
    (("submit",), Event.SUBMIT),
    (("enqueue",), Event.ENQUEUE),
    (("decode",), Event.DECODE),
    (("pts",), Event.PTS),
    (("send",), Event.SEND),
    (("sent",), Event.SEND),
    (("recv",), Event.RECEIVE),
    (("receive",), Event.RECEIVE),
    (("received",), Event.RECEIVE),
    (("arrival",), Event.RECEIVE),
    (("time",), Event.FRAME),
    (("timestamp",), Event.FRAME),
    (("stamp",), Event.FRAME),
    (("ts",), Event.FRAME),
    (("elapsed",), Event.FRAME),
    (("t",), Event.FRAME),
    (("frame",), Event.FRAME),
)
_VULKAN = {
    "actualpresenttime": Event.DISPLAY,
    "imagefirstpixelout": Event.DISPLAY,
    "imagefirstpixelvisible": Event.DISPLAY,
    "queueoperationsend": Event.GPU_END,
    "requestdequeued": Event.PRESENT,
}
"""Names of Vulkan's present timing, in nanoseconds by its specification."""
_NOT_STAMPS = frozenset(
    {
        "desired",
        "target",
        "expected",
        "budget",
        "margin",
        "latency",
        "busy",
        "wait",
        "delay",
        "lag",
        "age",
        "cost",
        "load",
        "total",
        "sum",
        "avg",
        "average",
        "mean",
        "min",
        "minimum",
        "max",
        "maximum",
        "med",
        "median",
        "std",
        "stddev",
        "variance",
        "duration",
        "jitter",
        "error",
        "rtt",
        "ping",
        "drift",
        "offset",
        "deviation",
        "work",
        "idle",
        "render",
        "draw",
        "update",
        "physics",
        "logic",
        "game",
        "thread",
        "process",
        "encode",
    }
)
"""Words of times that are no stamps: durations, wishes, figures."""
_EDGES = {"start", "begin", "end", "done"}
"""A `gpu_end_time` is a stamp, a `gpu_time` a duration."""


@dataclass(frozen=True, slots=True)
class Stamps:
    """A column of stamps or of frame times."""

    name: str
    kind: Kind
    event: Event
    is_interval: bool


def _words(name: str) -> list[str]:
    """`actualPresentTime (ns)` as `actual present time ns`."""
    # Microseconds: both signs, and what is left of one in another code page.
    plain = re.sub("[\u00b5\u03bc\ufffd](?=s)", "u", name)
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain)
    return re.findall(r"[a-z]+", spaced.lower())


def stamps_of(name: str) -> Stamps | None:
    """What a column holds by its name; None where that is no stamp of a frame."""
    vulkan = _VULKAN.get("".join(_words(name)))
    if vulkan is not None:
        return Stamps(name, Kind.NANOSECONDS, vulkan, is_interval=False)
    if "/" in name:
        # Frames/s, 1/s, J/ms: a rate has no stamps.
        return None
    words = _words(name)
    kind = _UNITS.get(words[-1]) if words else None
    if kind is None:
        return None
    rest = words[:-1]
    if rest and rest[-1] == "in":
        rest = rest[:-1]
    if not rest:
        return Stamps(name, kind, Event.FRAME, is_interval=False)
    if tuple(rest) in _INTERVALS:
        return Stamps(name, kind, Event.FRAME, is_interval=True)
    if _NOT_STAMPS & set(rest):
        return None
    if rest[-1] == "time" and {"cpu", "gpu"} & set(rest) and not _EDGES & set(rest):
        return None
    for signs, event in _EVENTS:
        if all(sign in rest for sign in signs):
            return Stamps(name, kind, event, is_interval=False)
    return None
