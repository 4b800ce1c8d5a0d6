"""A page of a session on the simulated GPU cannot be taken for one of a card."""

from __future__ import annotations

import pathlib

import pytest

from tests.simgpu.fixtures import Nurseries
from tests.simgpu.scenarios.table import SCENARIOS


pytestmark = pytest.mark.sim


def test_a_page_made_on_the_simulated_gpu_says_so_at_the_top(
    nurseries: Nurseries, tmp_path: pathlib.Path
) -> None:
    scenario = next(
        one
        for one in SCENARIOS
        if (one.framework, one.name) == ("torch", "global_list")
    )
    nursery = nurseries(scenario.environment, scenario.framework)
    page = tmp_path / "page.html"
    options = ("-p", "pytest_veo.plugin", "--veo-leak-check", f"--veo-html={page}")
    session = nursery.play(scenario, "clean", tmp_path, options)
    assert page.exists(), session.output
    text = page.read_text()
    assert 0 < text.index("<strong>Simulated GPU.</strong>") < text.index("<h1")
    assert "No leak in " in text, session.output
    assert "torch.allocated" in text
