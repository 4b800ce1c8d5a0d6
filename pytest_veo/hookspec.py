"""Hooks that other plugins and conftest files can implement."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import pytest


if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Sequence

    from pytest_veo.budget import LeakBudget
    from pytest_veo.probes.base import Probe
    from pytest_veo.readers.registry import Reader
    from pytest_veo.verdict import Verdict


@pytest.hookspec
def pytest_veo_probes(config: pytest.Config) -> Sequence[Probe] | None:
    """Give more probes; called once, before the first test.

    All results are used. A probe's name must not be taken.

    :param config: The pytest config object.

    Use in conftest plugins
    =======================

    Any conftest file can implement this hook; only those of the start directories
    are asked.
    """


@pytest.hookspec
def pytest_veo_readers(config: pytest.Config | None) -> Sequence[Reader] | None:
    """Give readers of further capture formats; called once, before collection.

    All results are used. They are asked before the built-in readers, and are let go
    at the end of the session.

    :param config: The pytest config object; None in `veo frames -p MODULE`.

    Use in conftest plugins
    =======================

    Any conftest file can implement this hook; only those of the start directories
    are asked.
    """


@pytest.hookspec
def pytest_veo_settle(config: pytest.Config, item: pytest.Item) -> None:
    """Bring an engine of your own to rest before a suspect is judged.

    Called after synchronising and collecting, each time a suspect is read.

    :param config: The pytest config object.
    :param item: The test that is looked at.

    Use in conftest plugins
    =======================

    Any conftest file can implement this hook. For a given item, only conftest files
    in the item's directory and its parents are consulted.
    """


@pytest.hookspec(firstresult=True)
def pytest_veo_budget(
    config: pytest.Config, item: pytest.Item, budget: LeakBudget
) -> LeakBudget | None:
    """Give an item's budget in place of the session's; markers go above it.

    Stops at the first result that is not None.

    :param config: The pytest config object.
    :param item: The test.
    :param budget: The session's budget.

    Use in conftest plugins
    =======================

    Any conftest file can implement this hook. For a given item, only conftest files
    in the item's directory and its parents are consulted.
    """


@pytest.hookspec(firstresult=True)
def pytest_veo_judged(
    config: pytest.Config, item: pytest.Item, verdict: Verdict
) -> Verdict | None:
    """Replace a verdict, for instance to accept a known leak with a reason.

    Stops at the first result that is not None. Not called for clean tests.

    :param config: The pytest config object.
    :param item: The test.
    :param verdict: What was decided.

    Use in conftest plugins
    =======================

    Any conftest file can implement this hook. For a given item, only conftest files
    in the item's directory and its parents are consulted.
    """


@pytest.hookspec
def pytest_veo_environment(config: pytest.Config) -> Mapping[str, str] | None:
    """Add rows to the description of the environment that a run is archived with.

    :param config: The pytest config object.

    Use in conftest plugins
    =======================

    Any conftest file can implement this hook.
    """


@pytest.hookspec
def pytest_veo_record(config: pytest.Config, record: Mapping[str, Any]) -> None:
    """See each test's record as the controller receives it.

    :param config: The pytest config object.
    :param record: The record, as it is archived.

    Use in conftest plugins
    =======================

    Any conftest file can implement this hook.
    """
