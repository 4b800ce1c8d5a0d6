"""Every option and ini key of leak checking, declared.

Imported by every pytest run that has the plugin installed, so it stands alone:
`settings` says what the values mean, once a session asks for a check.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING
from typing import Any


if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest


LEVELS = ("off", "fast", "deep")
GC_MODES = ("freeze", "plain")
EVIDENCE = ("off", "light", "full")
KEPT = ("archive", "html", "code_quality")
"""Options that keep what a session finds, whether it is checked for leaks or not."""
ANNOTATE = ("auto", "github", "off")
PROBES = (
    "host",
    "nvml",
    "torch",
    "accelerator",
    "cupy",
    "numba",
    "rmm",
    "jax",
    "onnxruntime",
    "cuda",
)
"""The names in `probes.catalogue`, which takes longer to import."""


class _LevelAction(argparse.Action):
    """Stores the level that the option's name ends in."""

    def __init__(self, **given: Any) -> None:
        super().__init__(nargs=0, **given)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        level = str(option_string).partition("=")[2]
        setattr(namespace, self.dest, level or LEVELS[1])


_OPTIONS: tuple[tuple[str, str, str, str, str], ...] = (
    # option, ini type, default, metavar, help
    (
        "probes",
        "args",
        "",
        "NAMES",
        "sources to read, comma separated (default: all): " + ", ".join(PROBES),
    ),
    (
        "require",
        "args",
        "",
        "NAMES",
        "fail the run if one of these sources could not be read",
    ),
    (
        "tolerance",
        "args",
        "",
        "LIST",
        "growth a run that is let pass: '4 KiB', or 'host.heap=4 KiB,torch.*=0 B'",
    ),
    ("reruns", "string", "", "N", "most confirming runs of one test; 0: none"),
    (
        "retention-limit",
        "string",
        "",
        "SIZE",
        "fail a test that keeps more than this after its first run (default: never)",
    ),
    (
        "confirm-share",
        "string",
        "10%",
        "PERCENT",
        "confirming may take this share of the tests' own time (default: 10%%)",
    ),
    (
        "confirm-start",
        "string",
        "2 s",
        "TIME",
        "confirming time that a session starts with (default: 2 s)",
    ),
    (
        "confirm-time",
        "string",
        "30 s",
        "TIME",
        "most time that confirming one test may take (default: 30 s)",
    ),
    (
        "archive",
        "string",
        "",
        "DIR|URL",
        "write every test's record into this folder, or below this URL (s3://...)",
    ),
    ("html", "string", "", "FILE", "write the session as one page, to open anywhere"),
    (
        "code-quality",
        "string",
        "",
        "FILE",
        "write what was found as a code quality report, as GitLab reads it",
    ),
    (
        "annotate",
        "string",
        "auto",
        "HOW",
        "github: print what was found as annotations of GitHub Actions, and write the "
        "step's summary; auto: where GITHUB_ACTIONS is set; off (default: auto)",
    ),
    (
        "baseline",
        "string",
        "",
        "REF",
        "compare every test with earlier runs: a file (*.json), a run's id, last, "
        "branch:NAME or median:N of the archive; ARCHIVE#REF for another archive",
    ),
    (
        "baseline-limit",
        "string",
        "",
        "LIST",
        "how much more than its baseline a test may keep: '10%%', '10%%+64 KiB' (more "
        "than both), 'host.heap=1 MiB,torch.*=p95' (default: 10%%+64 KiB)",
    ),
    (
        "evidence",
        "string",
        "full",
        "HOW",
        "how a leak is explained: full traces allocations in one more run, light "
        "looks at objects only, off (default: full)",
    ),
    (
        "gc",
        "string",
        "freeze",
        "MODE",
        "freeze: put pytest's own objects aside so that collecting is cheap; "
        "plain: leave the collector as it is (default: freeze)",
    ),
)


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and ini key."""
    group = parser.getgroup("veo", "GPU and host memory regression (pytest-veo)")
    # A level is part of the option's name: `--veo-leak-check tests/` must not take
    # the path for one, as an optional value would.
    group.addoption(
        "--veo-leak-check",
        *(f"--veo-leak-check={level}" for level in LEVELS),
        action=_LevelAction,
        dest="veo_leak_check",
        default=None,
        help="check every test for leaks: fast (the default level) looks at all and "
        "re-runs suspects, deep re-runs every test, off checks none",
    )
    parser.addini(
        "veo_leak_check", "level of leak checking: off, fast or deep", default="off"
    )
    for name, _kind, default, metavar, text in _OPTIONS:
        group.addoption(f"--veo-{name}", default=None, metavar=metavar, help=text)
        ini_text = text.replace("%%", "%")
        parser.addini(
            f"veo_{name.replace('-', '_')}",
            ini_text,
            type="string",
            default=default,
        )
    group.addoption(
        "--veo-update-baseline",
        action="store_true",
        default=False,
        help="put new and better figures into the files of --veo-baseline and "
        "veo_jitter_baseline; worse ones only with --veo-accept",
    )
    group.addoption(
        "--veo-accept",
        action="store_true",
        default=False,
        help="with --veo-update-baseline: let worse figures raise the baseline",
    )
    group.addoption(
        "--veo-strict",
        action="store_true",
        default=None,
        help="fail on unconfirmed growth, on fixtures that do not give back, on "
        "an archive that cannot be written and on a baseline that is missing or "
        "foreign, too",
    )
    parser.addini("veo_strict", "as --veo-strict", type="bool", default=False)


def wrong_level(arguments: Iterable[str]) -> str | None:
    """The first level on a command line that does not exist, which argparse words ill.

    It calls `deepest` in `--veo-leak-check=deepest` an argument that it ignored.
    """
    for argument in arguments:
        name, is_given, level = argument.partition("=")
        if name == "--veo-leak-check" and is_given and level not in LEVELS:
            return level
    return None


def text(config: pytest.Config, name: str) -> tuple[str, str]:
    """A setting's text and where it stands, for messages.

    Args:
        config: the session's.
        name: with underscores, without `veo_`.
    """
    given = config.getoption(f"veo_{name}")
    if given is not None:
        return str(given), f"--veo-{name.replace('_', '-')}"
    return str(config.getini(f"veo_{name}")), f"veo_{name} (ini file)"


def shows_setup(config: pytest.Config) -> bool:
    """Whether pytest shows how fixtures are set up: such tests are not measured."""
    names = ("setupshow", "setuponly")  # of plugins that may be switched off
    return any(config.getoption(name, False) for name in names)


def level(config: pytest.Config) -> str:
    """The level of leak checking as it is written, valid or not."""
    return text(config, "leak_check")[0]
