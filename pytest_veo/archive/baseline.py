"""One run's figures against those of earlier runs: what is worse, and what is noise.

A figure is worse only when it is above everything that earlier runs explain: the limit
(percent and amount, both), the runs' own robust spread, and what the worst of them
showed. What one run cannot show is not assumed: with fewer than five runs the spread
counts as unknown, and the limit stands alone.
"""

from __future__ import annotations

import enum
import fnmatch
import math
import statistics
from typing import TYPE_CHECKING
from typing import NamedTuple

from pytest_veo.errors import BadQuantity
from pytest_veo.errors import BadSetting
from pytest_veo.units import Unit
from pytest_veo.units import counted
from pytest_veo.units import format_value
from pytest_veo.units import parse_bytes


if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping
    from collections.abc import Sequence


PER_RUN = " a run"
"""Behind a counter's name: its growth a run."""
DEVICE_WIDE = "nvml.device_used*"
"""Other tenants move these: never compared."""
SPREAD_RUNS = 5
"""Fewest runs whose spread says something."""
SIGMAS = 6.0
"""So many robust standard deviations above the median are still noise..."""
SIGMAS_FEW = 30.0
"""...and so many more, divided by the runs: few runs tell their spread badly."""
_NORMAL_MAD = 1.4826
_NORMAL_IQR = 1.349
_DEFAULT_PERCENT = 10.0
_DEFAULT_BYTES = 64 << 10
_DEFAULT_AMOUNTS = {"host.python_blocks": 512, "host.mapped": 2 << 20}
"""512 blocks are as good as 64 KiB; Python maps 1 MiB for whichever test needs it."""
_POOLS = {"host.mapped": "host.heap"}
"""The C library maps what is large, and learns what large is: the same bytes are in
one of the two."""
_DEFAULT_NS = 1_000_000


class Key(NamedTuple):
    """Which figure."""

    nodeid: str
    counter: str
    """`probe.name`; ` a run` behind it for growth a run, as a leak check judged it."""
    device: str
    """`host`, `gpu` where a run has one device, else `gpu0`, `gpu1`, ..."""

    @property
    def name(self) -> str:
        """Counter and device, as reports and baseline files write them."""
        if self.device == "host":
            return self.counter
        return f"{self.counter} on {self.device}"

    @property
    def is_per_run(self) -> bool:
        """Whether it is growth a run, not growth over the first run."""
        return self.counter.endswith(PER_RUN)


class Past(NamedTuple):
    """What earlier runs showed of one figure, in `unit`."""

    usual: float
    """Their median."""
    spread: float
    """Their robust standard deviation; 0 with fewer than five runs."""
    most: float
    runs: int
    unit: str = Unit.BYTES.value

    @property
    def noise(self) -> float:
        """How far from the median a figure of the same program may well lie."""
        return (SIGMAS + SIGMAS_FEW / self.runs) * self.spread

    @classmethod
    def of(cls, values: Sequence[float], unit: str) -> Past:
        """From the figures of the runs, in any order, at least one."""
        return cls(
            usual=statistics.median(values),
            spread=robust_spread(values) if len(values) >= SPREAD_RUNS else 0.0,
            most=max(values),
            runs=len(values),
            unit=unit,
        )


def robust_spread(values: Sequence[float]) -> float:
    """A standard deviation that a few wild values cannot move.

    The larger of 1.4826 x MAD and IQR / 1.349 (the MAD is 0 as soon as half of the
    values agree; the quartiles then still see the other half).
    """
    middle = statistics.median(values)
    mad = statistics.median(abs(value - middle) for value in values)
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return max(_NORMAL_MAD * mad, (high - low) / _NORMAL_IQR)


def quantile_of(values: Sequence[float], share: float) -> float:
    """The R7 quantile, as `numpy.quantile` takes it."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


class Limit(NamedTuple):
    """How much above its baseline the figures of some counters may be."""

    pattern: str = "*"
    """Of `probe.name`."""
    percent: float | None = None
    amount: int | None = None
    """In the counter's unit: bytes, or a count."""
    quantile: float | None = None
    """Of the earlier runs, 0 to 1. None: above all of them, and as far again."""


class Outcome(enum.Enum):
    """What a figure's comparison says."""

    SAME = "same"
    WORSE = "worse"
    BETTER = "better"


class Difference(NamedTuple):
    """A figure beside its baseline."""

    key: Key
    past: Past
    now: float
    allowed: float
    """The largest figure that is not worse."""
    outcome: Outcome

    @property
    def change(self) -> float:
        """Now less the baseline's median."""
        return self.now - self.past.usual

    def text(self) -> str:
        """Both figures, and what they were held to: one line without the test."""
        unit = Unit(self.past.unit)
        runs = counted(self.past.runs, "run")
        spread = (
            f", spread {format_value(self.past.spread, unit)}"
            if self.past.runs >= SPREAD_RUNS
            else ""
        )
        return (
            f"{self.key.name} {format_value(self.now, unit)}, baseline "
            f"{format_value(self.past.usual, unit)} ({runs}{spread}), allowed "
            f"{format_value(math.floor(self.allowed), unit)}"
        )


def allowed(past: Past, limit: Limit, quantile_value: float | None = None) -> float:
    """The largest figure that is not worse than the baseline.

    Args:
        past: the earlier runs.
        limit: what the settings let pass.
        quantile_value: the limit's quantile of the runs, where they are at hand.
    """
    bounds = [past.usual + _margin(past, limit), past.usual + past.noise]
    if quantile_value is not None:
        bounds.append(quantile_value)
    elif past.runs > 1:
        bounds.append(2 * past.most - past.usual)
    return max(bounds)


def _margin(past: Past, limit: Limit) -> float:
    percent, amount = margins(limit, past.unit)
    return max(abs(past.usual) * percent / 100, amount)


def margins(limit: Limit, unit: str) -> tuple[float, float]:
    """Percentage and amount that a limit lets pass, the larger of the two.

    A limit that names only one of them is meant as it stands.
    """
    if limit.percent is None and limit.amount is None:
        return _DEFAULT_PERCENT, float(_default_amount(unit))
    return limit.percent or 0.0, float(limit.amount or 0)


def _default_amount(unit: str) -> int:
    if unit == Unit.BYTES.value:
        return _DEFAULT_BYTES
    return _DEFAULT_NS if unit == Unit.NANOSECONDS.value else 0


def compare(
    key: Key, past: Past, now: float, limit: Limit, quantile_value: float | None = None
) -> Difference:
    """Judge one figure."""
    top = allowed(past, limit, quantile_value)
    gain = max(_margin(past, limit), past.noise)
    outcome = Outcome.SAME
    if now > top:
        outcome = Outcome.WORSE
    elif now < past.usual - gain:
        outcome = Outcome.BETTER
    return Difference(key, past, now, top, outcome)


def limit_of(key: Key, limits: Iterable[Limit]) -> Limit:
    """The first limit whose pattern fits; some counters have a default of theirs."""
    counter = key.counter.removesuffix(PER_RUN)
    for limit in limits:
        if fnmatch.fnmatchcase(counter, limit.pattern):
            return limit
    if key.counter in _DEFAULT_AMOUNTS:
        return Limit(percent=_DEFAULT_PERCENT, amount=_DEFAULT_AMOUNTS[key.counter])
    return Limit()


def is_worth_a_line(key: Key, past: Past, limits: Iterable[Limit]) -> bool:
    """Whether a figure is too large to be taken for 0."""
    small = _margin(past._replace(usual=0.0), limit_of(key, limits)) / 4
    return max(abs(past.usual), abs(past.most)) > small


def moved(
    differences: Sequence[Difference],
    not_run: Mapping[Key, Past],
    limits: Sequence[Limit],
) -> dict[tuple[str, str], float]:
    """What may only have moved from one test to another, by counter and device.

    What is used for the first time is kept by whichever test comes first: an import, a
    pool, a library's handle. When tests run in another order, on other workers or in
    part, it shows in another test. So a test is worse for certain only by more than
    what other tests no longer keep.

    Args:
        differences: of all figures of this run.
        not_run: the baseline's figures of tests that did not run, or were not judged.
        limits: as given.
    """
    found: dict[tuple[str, str], float] = {}
    for difference in differences:
        if difference.outcome is Outcome.BETTER and difference.past.usual > 0:
            drop = difference.past.usual - max(0.0, difference.now)
            found[pool(difference.key)] = found.get(pool(difference.key), 0.0) + drop
    for key, past in not_run.items():
        if is_worth_a_line(key, past, limits):
            found[pool(key)] = found.get(pool(key), 0.0) + past.usual
    return {
        place: amount
        for place, amount in found.items()
        if not place[0].endswith(PER_RUN)
    }


def pool(key: Key) -> tuple[str, str]:
    """Counter and device within which what is kept may move."""
    return _POOLS.get(key.counter, key.counter), key.device


def parse_limits(text: str, place: str) -> tuple[Limit, ...]:
    """Limits from `'10%'`, `'10%+64 KiB'`, `'host.heap=1 MiB,torch.*=5%+p95'`.

    Args:
        text: parts separated by commas, the first that fits a counter holds.
        place: where it is written, for messages.

    Raises:
        BadSetting: naming the place and what is not understood.
    """
    found = []
    for part in (part.strip() for part in text.split(",")):
        if not part:
            continue
        pattern, equals, amounts = part.rpartition("=")
        if equals and "." not in pattern and "*" not in pattern:
            raise BadSetting(
                f"{place}: {pattern!r} is no counter, write probe.name such as "
                "host.heap or torch.allocated"
            )
        limit = Limit(pattern=pattern.strip() or "*")
        for amount in amounts.split("+"):
            limit = _with_amount(limit, amount.strip(), place)
        found.append(limit)
    # A limit for all comes last, wherever it is written.
    return tuple(sorted(found, key=lambda limit: limit.pattern == "*"))


def _with_amount(limit: Limit, text: str, place: str) -> Limit:
    try:
        if text.endswith("%"):
            return limit._replace(percent=_number(text[:-1], most=math.inf))
        if text.startswith("p"):
            return limit._replace(quantile=_number(text[1:], most=100) / 100)
        return limit._replace(amount=parse_bytes(text))
    except (BadQuantity, ValueError):
        raise BadSetting(
            f"{place}: {text!r} is no limit, write a percentage ('10%'), a size "
            "('64 KiB'), a quantile of the earlier runs ('p95'), or some of them "
            "with '+' between"
        ) from None


def _number(text: str, *, most: float) -> float:
    value = float(text)
    if not 0 <= value <= most or math.isinf(value):
        raise ValueError(text)
    return value
