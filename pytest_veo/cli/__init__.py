"""The `veo` command: one module for each subcommand, imported when it is asked for.

A subcommand's module has `add_parser(subparsers)`, which sets `run` as the parsed
arguments' default; `run(args)` prints and returns the exit status.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import io
import os
import sys
from typing import TYPE_CHECKING

from pytest_veo.errors import CommandError
from pytest_veo.errors import VeoError
from pytest_veo.report.visible import visible


if TYPE_CHECKING:
    from collections.abc import Sequence


COMMANDS = {
    "show": "pytest_veo.cli.show",
    "html": "pytest_veo.cli.html",
    "doctor": "pytest_veo.cli.doctor",
    "frames": "pytest_veo.frames_cli",
    "compact": "pytest_veo.cli.compact",
    "prune": "pytest_veo.cli.prune",
    "merge": "pytest_veo.cli.merge",
    "compare": "pytest_veo.cli.compare",
    "trend": "pytest_veo.cli.trend",
    "export": "pytest_veo.cli.export",
}
"""Name to module, in the order in which the help lists them."""
BAD_INPUT = 2
"""Exit status, as argparse's own."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Returns:
        The exit status: 0, or 2 after one line on the error stream.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    args = _parser(words).parse_args(words)
    _speak_any_locale()
    try:
        status: int = args.run(args)
        print(end="", flush=True)
    except BrokenPipeError:
        _say_nothing_at_exit()  # the reader has seen enough: `veo show | head`
        return 0
    except OSError as error:
        _say_nothing_at_exit()
        print(f"veo {args.command}: {error}", file=sys.stderr)
        return BAD_INPUT
    except VeoError as error:
        told = visible(str(error), keep="\n")
        print(f"veo {args.command}: {told}", file=sys.stderr)
        return error.exit_status if isinstance(error, CommandError) else BAD_INPUT
    return status


def _speak_any_locale() -> None:
    """Show as its code what the terminal has no character for."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _say_nothing_at_exit() -> None:
    """What could not be printed is not tried again when Python ends."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="veo", description="Archived runs of pytest-veo, and what it can watch."
    )
    version = importlib.metadata.version("pytest-veo")
    parser.add_argument("--version", action="version", version=f"veo {version}")
    subparsers = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", title="commands"
    )
    for module in _modules(words):
        importlib.import_module(module).add_parser(subparsers)
    return parser


def _modules(words: Sequence[str]) -> list[str]:
    """The module of the subcommand that is asked for, else all there are."""
    if words and words[0] in COMMANDS and _exists(COMMANDS[words[0]]):
        return [COMMANDS[words[0]]]
    return [module for module in COMMANDS.values() if _exists(module)]


def _exists(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
