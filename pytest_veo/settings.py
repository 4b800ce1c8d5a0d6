"""What options, ini keys and marker arguments of leak checking mean.

Precedence: marker, then the hook `pytest_veo_budget`, then the command line, then
the ini file. Whatever means nothing is refused before the first test.
"""

from __future__ import annotations

import datetime
import fnmatch
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

import pytest

from pytest_veo.budget import Allowance
from pytest_veo.budget import LeakBudget
from pytest_veo.budget import Level
from pytest_veo.budget import MemoryBudget
from pytest_veo.budget import Tolerance
from pytest_veo.errors import BadQuantity
from pytest_veo.errors import BadSetting
from pytest_veo.options import EVIDENCE
from pytest_veo.options import GC_MODES
from pytest_veo.options import text
from pytest_veo.probes.catalogue import COUNTERS
from pytest_veo.units import parse_bytes
from pytest_veo.units import parse_ns


if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping
    from collections.abc import Sequence


class Settings(NamedTuple):
    """The session's settings, all resolved."""

    level: Level
    probes: tuple[str, ...]
    """Empty: all."""
    require: tuple[str, ...]
    budget: LeakBudget
    archive: str | None
    html: str | None
    baseline: str | None
    """What earlier runs to compare with, as it is written."""
    strict: bool
    evidence: str
    """`off`, `light` or `full`."""
    freeze: bool
    confirm_share: float
    """Confirming may take this share of the time the tests take."""
    confirm_start_ns: int
    """Confirming time that the session starts with."""


def resolve(config: pytest.Config) -> Settings:
    """All settings.

    Raises:
        BadSetting: one means nothing; the message names the place, the value and
            the allowed ones.
    """

    def read(name: str) -> tuple[str, str]:
        return text(config, name)

    level = level_of(*read("leak_check"))
    return Settings(
        level=level,
        probes=_probes(*read("probes"), default=()),
        require=_probes(*read("require"), default=()),
        budget=LeakBudget(
            level=level,
            tolerances=_tolerances(*read("tolerance")),
            reruns=_count(*read("reruns")),
            retention_limit_bytes=_size(*read("retention_limit")),
            confirm_time_ns=_time(*read("confirm_time")),
        ),
        archive=read("archive")[0] or None,
        html=read("html")[0] or None,
        baseline=read("baseline")[0] or None,
        strict=_strict(config),
        evidence=_one_of(*read("evidence"), allowed=EVIDENCE),
        freeze=_one_of(*read("gc"), allowed=GC_MODES) == "freeze",
        confirm_share=_share(*read("confirm_share")),
        confirm_start_ns=_time(*read("confirm_start")),
    )


def _strict(config: pytest.Config) -> bool:
    if config.getoption("veo_strict"):
        return True
    try:
        return bool(config.getini("veo_strict"))
    except (TypeError, ValueError, pytest.UsageError) as error:
        raise BadSetting(
            f"veo_strict (ini file): neither true nor false, {error}"
        ) from error


def level_of(text: str, place: str) -> Level:
    """The level of this name.

    Raises:
        BadSetting: there is none; the message names the place and the allowed ones.
    """
    return Level(_one_of(text, place, allowed=tuple(level.value for level in Level)))


def _one_of(text: str, place: str, *, allowed: Sequence[str]) -> str:
    if text not in allowed:
        raise BadSetting(
            f"{place}: {text!r} is none of {', '.join(allowed)}{_hint(text, allowed)}"
        )
    return text


def _hint(text: str, allowed: Iterable[str]) -> str:
    import difflib  # milliseconds that only a slip is worth

    close = difflib.get_close_matches(text, list(allowed), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _names(value: str) -> list[str]:
    return [name.strip() for name in value.split(",") if name.strip()]


def _probes(text: str, place: str, *, default: tuple[str, ...]) -> tuple[str, ...]:
    names = _names(text)
    return tuple(names) if names else default


def check_probes(names: Iterable[str], known: Sequence[str], place: str) -> None:
    """Refuse the name of a probe that nobody registered.

    Raises:
        BadSetting: naming the place and the known probes.
    """
    for name in names:
        if name not in known:
            raise BadSetting(
                f"{place}: there is no probe {name!r}, known are "
                f"{', '.join(known)}{_hint(name, known)}"
            )


def check_counters(budget: LeakBudget, probes: Sequence[str], place: str) -> None:
    """Refuse a counter that no probe has; patterns may mean any.

    Raises:
        BadSetting: naming the place and the known probes.
    """
    named = (*(tolerance.pattern for tolerance in budget.tolerances), *budget.counters)
    for pattern in named:
        name, _, counter = pattern.partition(".")
        if name.isidentifier():
            check_probes((name,), probes, place)
        known = COUNTERS.get(name, ())
        if known and not fnmatch.filter(known, counter):
            raise BadSetting(
                f"{place}: probe {name!r} has no counter {counter!r}, it has "
                f"{', '.join(known)}{_hint(counter, known)}"
            )


def _tolerances(text: str, place: str) -> tuple[Tolerance, ...]:
    found = []
    for part in _names(text):
        pattern, equals, size = part.rpartition("=")
        if equals and "." not in pattern and "*" not in pattern:
            raise BadSetting(
                f"{place}: {pattern!r} is no counter, write probe.name such as "
                "host.heap or torch.allocated"
            )
        try:
            growth = parse_bytes(size)
        except BadQuantity as error:
            raise BadSetting(f"{place}: {error}") from error
        found.append(Tolerance(pattern.strip() or "*", growth))
    return tuple(found)


def _size(text: str, place: str) -> int | None:
    if not text:
        return None
    try:
        return parse_bytes(text)
    except BadQuantity as error:
        raise BadSetting(f"{place}: {error}") from error


def _time(text: str, place: str) -> int:
    try:
        return parse_ns(text)
    except BadQuantity as error:
        raise BadSetting(f"{place}: {error}") from error


def _count(text: str, place: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal():
        raise BadSetting(f"{place}: {text!r} is no number of runs, write 0 or more")
    return int(text)


def _share(text: str, place: str) -> float:
    number = text.removesuffix("%").strip()
    try:
        share = float(number) / 100
    except ValueError:
        share = -1.0
    if not text.endswith("%") or not 0 <= share < float("inf"):
        raise BadSetting(f"{place}: {text!r} is no share, write e.g. '10%'")
    return share


_LEAK_ARGUMENTS = (
    "tolerance",
    "counters",
    "reruns",
    "level",
    "allow",
    "reason",
    "until",
)
_MEMORY_ARGUMENTS = ("peak", "growth", "on")


def leak_budget(
    item: pytest.Item, base: LeakBudget, today: datetime.date
) -> LeakBudget:
    """The item's own budget: every `veo_leak` marker applied, the closest last.

    Raises:
        BadSetting: naming the test, the argument and the allowed values.
    """
    budget = base
    for marker in reversed(list(item.iter_markers("veo_leak"))):
        budget = _apply(marker, f"{item.nodeid}: veo_leak", budget, today)
    return budget


def _check_arguments(marker: pytest.Mark, place: str, allowed: Sequence[str]) -> None:
    if marker.args:
        raise BadSetting(
            f"{place}: takes keyword arguments only ({', '.join(allowed)}), "
            f"got {marker.args[0]!r}"
        )
    for name in marker.kwargs:
        if name not in allowed:
            raise BadSetting(
                f"{place}: unknown argument {name!r}, allowed are "
                f"{', '.join(allowed)}{_hint(name, allowed)}"
            )


def _apply(
    marker: pytest.Mark, place: str, budget: LeakBudget, today: datetime.date
) -> LeakBudget:
    _check_arguments(marker, place, _LEAK_ARGUMENTS)
    given = marker.kwargs
    changes: dict[str, Any] = {}
    if "level" in given:
        changes["level"] = level_of(str(given["level"]), f"{place}(level)")
    if "tolerance" in given:
        own = _tolerances(str(given["tolerance"]), f"{place}(tolerance)")
        changes["tolerances"] = own + budget.tolerances
    if "counters" in given:
        changes["counters"] = _patterns(given["counters"], f"{place}(counters)")
    if "reruns" in given:
        changes["reruns"] = _count(str(given["reruns"]), f"{place}(reruns)")
    if {"allow", "reason", "until"} & given.keys():
        changes["allowance"] = _allowance(given, place, today)
    return budget._replace(**changes)


def _patterns(value: object, place: str) -> tuple[str, ...]:
    patterns = _names(value) if isinstance(value, str) else value
    if not isinstance(patterns, list | tuple) or not all(
        isinstance(pattern, str) and ("." in pattern or "*" in pattern)
        for pattern in patterns
    ):
        raise BadSetting(
            f"{place}: {value!r} names no counters, write e.g. "
            "['torch.allocated', 'host.*']"
        )
    return tuple(patterns)


def _allowance(
    given: Mapping[str, Any], place: str, today: datetime.date
) -> Allowance | None:
    if "allow" not in given:
        name = "reason" if "reason" in given else "until"
        raise BadSetting(f"{place}({name}): belongs to an allowance, add allow=True")
    allow = given["allow"]
    if not isinstance(allow, bool):
        raise BadSetting(f"{place}(allow): {allow!r} is neither True nor False")
    if not allow:
        return None
    reason = given.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise BadSetting(f"{place}(allow): an allowance needs a reason='...'")
    until = given.get("until")
    if until is None:
        return Allowance(reason=reason)
    try:
        date = datetime.date.fromisoformat(str(until))
    except ValueError:
        raise BadSetting(
            f"{place}(until): {until!r} is no date, write e.g. '2027-01-31'"
        ) from None
    if date < today:
        raise BadSetting(
            f"{place}(until): the allowance ended on {date}, fix the leak or renew it"
        )
    return Allowance(reason=reason, until=date)


def memory_budgets(item: pytest.Item) -> tuple[MemoryBudget, ...]:
    """One budget for each `veo_memory` marker of the item.

    Raises:
        BadSetting: naming the test, the argument and the allowed values.
    """
    budgets = []
    for marker in item.iter_markers("veo_memory"):
        place = f"{item.nodeid}: veo_memory"
        _check_arguments(marker, place, _MEMORY_ARGUMENTS)
        given = marker.kwargs
        if not {"peak", "growth"} & given.keys():
            raise BadSetting(f"{place}: needs peak= or growth=")
        on = given.get("on", "host.rss")
        if not isinstance(on, str) or "." not in on:
            raise BadSetting(
                f"{place}(on): {on!r} is no counter, write e.g. 'torch.allocated'"
            )
        budgets.append(
            MemoryBudget(
                on=on,
                peak_bytes=_marker_size(given, "peak", place),
                growth_bytes=_marker_size(given, "growth", place),
            )
        )
    return tuple(budgets)


def _marker_size(given: Mapping[str, Any], name: str, place: str) -> int | None:
    if name not in given:
        return None
    return _size(str(given[name]), f"{place}({name})")
