"""`veo frames FILE`: what a capture holds, and every tool's figures side by side."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_veo import hookspec
from pytest_veo.errors import BadSetting
from pytest_veo.errors import CommandError
from pytest_veo.errors import FramesError
from pytest_veo.errors import VeoError
from pytest_veo.frames.figures import TOOLS
from pytest_veo.frames.figures import Figure
from pytest_veo.readers import Capture
from pytest_veo.readers import CapturedSeries
from pytest_veo.readers import read_capture
from pytest_veo.readers import register_reader
from pytest_veo.units import format_ns


_SHOWN_SERIES = 12


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add `frames` to the `veo` command.

    Args:
        subparsers: what `ArgumentParser.add_subparsers` returned.
    """
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "frames",
        help="read a frame capture and print every tool's figures side by side",
        description=(
            "Reads captures of PresentMon, FrameView, MangoHud, CapFrameX, OCAT, MSI "
            "Afterburner, OBS, Android, Macrobenchmark, PerfDog, WebRTC, Nsight "
            "Systems, video files and plain tables of stamps."
        ),
    )
    parser.add_argument("file", help="the capture; its format is told by its content")
    parser.add_argument("--process", help="a program's name or process id")
    parser.add_argument("--swapchain", help="a swapchain's address")
    parser.add_argument("--event", help="present, display, gpu_end, pts, ...")
    parser.add_argument(
        "--compare", metavar="B", help="a second capture to set beside it"
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON instead of text"
    )
    parser.add_argument(
        "-p",
        dest="plugins",
        metavar="MODULE",
        action="append",
        default=[],
        help="a module with the hook pytest_veo_readers, for formats of your own",
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Read the file or files and print.

    Returns:
        0.

    Raises:
        CommandError: a capture that cannot be read, or series that are not there.
    """
    try:
        for name in args.plugins:
            _register_readers(name)
        captures = [read_capture(args.file)]
        if args.compare:
            captures.append(read_capture(args.compare))
        chosen = [_choose(capture, args) for capture in captures]
    except VeoError as error:
        raise CommandError(str(error)) from error
    if args.json:
        documents = [_document(c, s) for c, s in zip(captures, chosen, strict=True)]
        whole = documents[0] if len(documents) == 1 else {"captures": documents}
        print(json.dumps(whole, indent=2))
        return 0
    for capture, series in zip(captures, chosen, strict=True):
        print("\n".join(_describe(capture, series)))
    print("\n".join(_side_by_side([series for series in chosen if series is not None])))
    return 0


def _register_readers(name: str) -> None:
    """Add the formats that a module gives through the hook `pytest_veo_readers`.

    Raises:
        BadSetting: there is no such module, or it gives no reader.
    """
    # As pytest does it for `-p`: a module of the current folder is found.
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise BadSetting(f"-p {name}: {error}") from error
    finally:
        sys.path.pop(0)
    # Of pytest's kind: hooks are found by their names.
    manager = pytest.PytestPluginManager()
    manager.add_hookspecs(hookspec)
    manager.register(module)
    given = manager.hook.pytest_veo_readers(config=None)
    found = [reader for some in given for reader in some or ()]
    if not found:
        raise BadSetting(f"-p {name}: it gives no reader by pytest_veo_readers")
    for reader in found:
        register_reader(reader)


def _choose(capture: Capture, args: argparse.Namespace) -> CapturedSeries | None:
    asked = args.process or args.swapchain or args.event
    if not capture.series and not asked:
        return None
    return capture.pick(
        process=args.process, swapchain=args.swapchain, event=args.event
    )


def _describe(capture: Capture, chosen: CapturedSeries | None) -> list[str]:
    version = f" {capture.version}" if capture.version else ""
    lines = [f"{capture.file}: {capture.format}{version}"]
    lines += [f"  {name}: {value}" for name, value in capture.facts[:8]]
    for series in capture.series[:_SHOWN_SERIES]:
        mark = "*" if series is chosen else " "
        lines.append(f" {mark} {_series_line(series)}")
    more = len(capture.series) - _SHOWN_SERIES
    if more > 0:
        lines.append(f"   and {more} more series")
    for counter in capture.counters:
        share = 100 * counter.dropped / counter.total if counter.total else 0.0
        lines.append(
            f"   {counter.name}: {counter.dropped} of {counter.total} ({share:.3g} %)"
        )
    lines += [f"   {_figure_text(figure)}" for figure in capture.summary]
    lines += [f"   note: {note}" for note in capture.notes]
    return lines


def _series_line(series: CapturedSeries) -> str:
    text = f"{series.name}: {len(series)} {series.event} stamps"
    text += f" over {format_ns(series.span_ns)} ({series.clock} clock)"
    if series.dropped is not None:
        text += f", {int(series.dropped.sum())} never displayed"
    return text + (", sampled" if series.sampled else "")


def _figure_text(figure: Figure) -> str:
    value = f"{figure.value:.4g}" if figure.value < 1e6 else f"{figure.value:.0f}"
    return f"{figure.name}: {value} {figure.unit}".rstrip()


def _side_by_side(chosen: list[CapturedSeries]) -> list[str]:
    """Each tool's figures, a column for each capture, and why tools differ."""
    if not chosen:
        return []
    lines = [""]
    for tool in TOOLS:
        try:
            columns = [series.figures(tool.name) for series in chosen]
        except FramesError as error:
            return [*lines, str(error)]
        lines.append(f"{tool.title} ({tool.name})")
        lines.append(f"  {tool.why}")
        for row in zip(*columns, strict=True):
            lines.append("  " + _row_text(row))
    return lines


def _row_text(row: tuple[Figure, ...]) -> str:
    text = f"{row[0].name:<32}" + "".join(f"{f.value:>12.3f}" for f in row)
    if len(row) == 2 and row[0].value:
        text += f"{100 * (row[1].value / row[0].value - 1):>+9.1f} %"
    return f"{text}  {row[0].unit}"


def _document(capture: Capture, chosen: CapturedSeries | None) -> dict[str, Any]:
    return {
        "file": capture.file,
        "format": capture.format,
        "version": capture.version,
        "facts": dict(capture.facts),
        "notes": list(capture.notes),
        "counters": [
            {"name": c.name, "dropped": c.dropped, "total": c.total}
            for c in capture.counters
        ],
        "summary": [_figure(figure) for figure in capture.summary],
        "series": [_series(series) for series in capture.series],
        "chosen": None if chosen is None else chosen.name,
        "figures": {} if chosen is None else _figures(chosen),
    }


def _series(series: CapturedSeries) -> dict[str, Any]:
    return {
        "name": series.name,
        "event": str(series.event),
        "clock": str(series.clock),
        "frames": len(series),
        "span_ns": series.span_ns,
        "sampled": series.sampled,
        "never_displayed": None
        if series.dropped is None
        else int(series.dropped.sum()),
        "process": series.process,
        "process_id": series.process_id,
        "swapchain": None if series.swapchain is None else hex(series.swapchain),
    }


def _figure(figure: Figure) -> dict[str, Any]:
    return {"name": figure.name, "value": figure.value, "unit": figure.unit}


def _figures(series: CapturedSeries) -> dict[str, Any]:
    try:
        return {
            tool.name: {
                figure.name: figure.value for figure in series.figures(tool.name)
            }
            for tool in TOOLS
        }
    except FramesError:
        return {}
