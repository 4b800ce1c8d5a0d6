from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_veo import frames_cli
from pytest_veo.errors import CommandError
from pytest_veo.frames.figures import TOOLS
from tests.readers.samples import texts


TEXTS = texts()


def veo(*arguments: str | Path) -> int:
    parser = argparse.ArgumentParser()
    frames_cli.add_parser(parser.add_subparsers())
    args = parser.parse_args(["frames", *map(str, arguments)])
    status = args.run(args)
    assert isinstance(status, int)
    return status


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    file = tmp_path / "capture.csv"
    file.write_text(TEXTS["presentmon-v1"])
    return file


def test_every_tool_s_figures_stand_side_by_side_with_a_reason(
    capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert veo(capture) == 0
    shown = capsys.readouterr().out
    assert f"{capture}: presentmon v1" in shown
    assert (
        " * game.exe[42] 0xab: 8 present stamps over 112 ms (tool clock), 0 never "
        "displayed"
    ) in shown
    for tool in TOOLS:
        assert f"{tool.title} ({tool.name})\n  {tool.why}\n" in shown
    assert f"  {'1% Low FPS':<32}{62.5:>12.3f}  fps" in shown


def test_two_captures_stand_beside_each_other(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = tmp_path / "b.csv"
    slower.write_text("frame_ms\n" + "20.0\n" * 8)
    assert veo(capture, "--compare", slower) == 0
    shown = capsys.readouterr().out
    assert f"  {'Avg FPS':<32}{62.5:>12.3f}{50.0:>12.3f}{-20.0:>+9.1f} %  fps" in shown


def test_json_has_the_same_figures(
    capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert veo(capture, "--json", "--event", "display") == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["format"] == "presentmon"
    assert [s["event"] for s in document["series"]] == ["present", "display"]
    assert document["series"][0]["swapchain"] == "0xab"
    assert document["figures"]["frameview"]["Avg FPS"] == pytest.approx(62.5)


def test_counters_are_printed_where_there_are_no_frames(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "obs.txt"
    file.write_text(TEXTS["obs"])
    assert veo(file) == 0
    shown = capsys.readouterr().out
    assert "   lagged (a): 10 of 100 (10 %)\n" in shown
    assert "note: OBS writes no frames, only counts" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["--process", "other"], "nothing with process=other", id="process"
        ),
        pytest.param(
            ["--swapchain", "no"], "'no' is no address: write", id="swapchain"
        ),
        pytest.param(["--event", "sneeze"], "unknown event 'sneeze'", id="event"),
        pytest.param(["--compare", "gone"], "there is no such file", id="compare"),
    ],
)
def test_what_is_not_there_ends_the_command(
    capture: Path, arguments: list[str], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        veo(capture, *arguments)
