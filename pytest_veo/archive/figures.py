"""The figures of a run's records that can be held against those of other runs."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING
from typing import Any

from pytest_veo.archive.baseline import DEVICE_WIDE
from pytest_veo.archive.baseline import PER_RUN
from pytest_veo.archive.baseline import Key


if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping


HOST = "host"


def figures_of(
    records: Iterable[Mapping[str, Any]],
) -> dict[Key, tuple[float, str]]:
    """Every figure of the tests that passed, with its unit.

    What is left out: tests that were not judged, since their growth is not their own,
    and counters that other processes move.

    Args:
        records: as they are archived.
    """
    kept = [data for data in records if _is_judged(data)]
    devices = short_devices(row["device"] for data in kept for row in data["counters"])
    found: dict[Key, tuple[float, str]] = {}
    for data in kept:
        nodeid = data["nodeid"]
        for row in data["counters"]:
            counter = row["counter"]
            if fnmatch.fnmatchcase(counter, DEVICE_WIDE):
                continue
            key = Key(nodeid, counter, devices[row["device"]])
            found[key] = float(row["growth"]), row["unit"]
        for finding in data["verdict"]["findings"] if data["verdict"]["runs"] else ():
            device = devices.get(finding["device"], finding["device"])
            key = Key(nodeid, f"{finding['counter']}{PER_RUN}", device)
            found[key] = float(finding["per_run"]), finding["unit"]
    return found


def _is_judged(data: Mapping[str, Any]) -> bool:
    return bool(
        data["test_outcome"] == "passed" and data["verdict"]["outcome"] != "not judged"
    )


def short_devices(devices: Iterable[str]) -> dict[str, str]:
    """Names that mean the same on another machine: `gpu`, or `gpu0`, `gpu1`, ...

    Devices are numbered in the order of their names, the same in every run.
    """
    seen = sorted({device for device in devices if device != HOST})
    if any(
        device == "gpu" or device.removeprefix("gpu").isdecimal() for device in seen
    ):
        return {HOST: HOST, **{name: name for name in seen}}  # short already
    if len(seen) == 1:
        return {HOST: HOST, seen[0]: "gpu"}
    return {HOST: HOST, **{name: f"gpu{i}" for i, name in enumerate(seen)}}
