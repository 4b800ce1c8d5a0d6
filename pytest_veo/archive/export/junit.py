"""A run's figures as the properties of JUnit XML, which CI systems keep with a test."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from pytest_veo.archive.export import run as rows


if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Mapping
    from typing import Any

    from pytest_veo.archive.store import Run


_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def properties(record: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Name and value of what a test's record says: its verdict, and what grew.

    Args:
        record: as it is archived.
    """
    yield "veo.verdict", record["verdict"]["outcome"]
    for row in record["counters"]:
        if row["growth"]:
            device = "" if row["device"] == rows.HOST else f".{row['device']}"
            yield f"veo.{row['counter']}{device}.growth_{row['unit']}", row["growth"]
    if not record["verdict"]["runs"]:
        return
    for finding in record["verdict"]["findings"]:
        device = "" if finding["device"] == rows.HOST else f".{finding['device']}"
        name = f"veo.{finding['counter']}{device}.per_run_{finding['unit']}"
        yield name, finding["per_run"]


def text(found: Run) -> str:
    """The run as a JUnit XML file."""
    suite = ElementTree.Element(
        "testsuite",
        name="pytest-veo",
        tests=str(len(found.records)),
        failures=str(sum(r.test_outcome == "failed" for r in found.records)),
        skipped=str(sum(r.test_outcome == "skipped" for r in found.records)),
        timestamp=found.header.started_at,
    )
    origin = ElementTree.SubElement(suite, "properties")
    for name, value in rows.origin(found.header).items():
        _property(origin, name, value)
    for record in found.records:
        file, _, name = record.nodeid.partition("::")
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_clean(file.removesuffix(".py").replace("/", ".")),
            name=_clean(name or file),
            time=f"{record.duration_ns / 1e9:.6f}",
        )
        own = ElementTree.SubElement(case, "properties")
        for key, figure in properties(record.to_dict()):
            _property(own, key, figure)
        if record.test_outcome == "failed":
            reason = record.verdict.reason or record.verdict.outcome.value
            ElementTree.SubElement(case, "failure", message=_clean(reason))
        elif record.test_outcome == "skipped":
            ElementTree.SubElement(case, "skipped")
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites, " ")
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _property(parent: ElementTree.Element, name: str, value: object) -> None:
    ElementTree.SubElement(
        parent, "property", name=_clean(name), value=_clean(str(value))
    )


def _clean(value: str) -> str:
    """XML knows no control characters."""
    return _FORBIDDEN.sub("\ufffd", value)
