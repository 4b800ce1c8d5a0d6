"""One small capture of every format, made by hand."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path


def _rows(row: str, count: int = 8) -> str:
    return "".join(row.format(i=i, t=i * 0.016, ms=i * 16.0) for i in range(count))


def texts() -> dict[str, str]:
    """Text captures by name."""
    presents = (
        "Application,ProcessID,SwapChainAddress,Runtime,Dropped,TimeInSeconds,"
        "MsBetweenPresents,MsBetweenDisplayChange,MsUntilDisplayed"
    )
    present_row = "game.exe,42,0xAB,DXGI,0,{t:.6f},16.000,16.000,20.000"
    return {
        "presentmon-v1": f"{presents}\n" + _rows(present_row + "\n"),
        "presentmon-v2": (
            "Application,ProcessID,SwapChainAddress,FrameType,CPUStartQPC,FrameTime,"
            "DisplayLatency,DisplayedTime\n"
            + _rows("game.exe,42,0xAB,Application,{i}60000,1.0,NA,NA\n").replace(
                "60000,1.0", "0000,1.0000"
            )
        ),
        "presentmon-default": (
            "Application,ProcessID,SwapChainAddress,FrameType,TimeInMs,"
            "MsBetweenPresents,MsUntilDisplayed,MsBetweenAppStart\n"
            + _rows("game.exe,42,0xAB,Application,{ms},16.0,20.0,16.0\n")
        ),
        "frameview": (
            f"{presents},Render Queue Depth,GPU0Util(%)\n"
            + _rows(present_row + ", 1, 45\n")
        ),
        "ocat": (
            f"{presents},Motherboard,Processor\n"
            + present_row.format(t=0.0)
            + ',"MSI, Inc.",i9\n'
            + "".join(present_row.format(t=i * 0.016) + "\n" for i in range(1, 8))
        ),
        "capframex-csv": f"//GameName=x\n{presents}\n" + _rows(present_row + "\n"),
        "mangohud": (
            "os,cpu,gpu,ram\nArch,Ryzen,RX,1\nfps,frametime,cpu_load,elapsed\n"
            + _rows("62.5,16.0,50,{i}16000000\n")
        ),
        "mangohud-summary": (
            "0.1% Min FPS,1% Min FPS,97% Percentile FPS,Average FPS\n30,40,60,50.5\n"
        ),
        "afterburner": (
            "00, 24-10-2025 16:56:05, Hardware monitoring log v1.6\n"
            "02, 24-10-2025 16:56:05, Power,Framerate,Frametime\n"
            + _rows("80, 24-10-2025 16:56:0{i},100.1,60.0,16.66\n")
        ),
        "obs": (
            "12:00:00.100: OBS 30.1.2 (64-bit)\n12:10:00.101: Output 'a': Total drawn "
            "frames: 90 (100 attempted)\n12:10:00.101: Output 'a': Number of lagged "
            "frames due to rendering lag/stalls: 10 (10.0%)\n"
        ),
        "android": (
            "com.app/com.app.Main\n---PROFILEDATA---\nFlags,IntendedVsync,"
            "FrameCompleted,DisplayPresentTime,\n"
            + _rows("0,1{i}000000,1{i}500000,1{i}900000,\n")
            + "---PROFILEDATA---\n"
        ),
        "plain": "frame_index,t_ns,gpu_end_ns\n" + _rows("{i},{i}000,{i}500\n"),
        "nsys-csv": "Start (ns),Duration (ns),Name\n" + _rows("{i}000,5,Present\n"),
        **{name: json.dumps(document, indent=1) for name, document in _documents()},
    }


def _documents() -> list[tuple[str, object]]:
    data = {
        "TimeInSeconds": [0, 0.016, 0.032],
        "MsBetweenPresents": [16, 16.0, 16],
        "MsUntilDisplayed": [20.0, 20.0, 20.0],
        "MsBetweenDisplayChange": [16, 16, 16],
        "Dropped": [False, False, False],
    }
    sampled = {
        "frameDurationCpuMs": {"P50": 5.0, "runs": [[5.0, 6.0], [4.0]]},
        "frameOverrunMs": {"P50": 0.0, "runs": [[-5.0, 6.0], [4.0]]},
    }
    counters = {
        "type": "inbound-rtp",
        "kind": "video",
        "ssrc": 7,
        "timestamp": 1.0,
        "framesDecoded": 292,
        "framesDropped": 3,
        "totalInterFrameDelay": 9.6,
        "totalSquaredInterFrameDelay": 0.33,
    }
    row = {"FrameTimes": [16.0, 17.0], "Jank": 0, "BigJank": 0}
    return [
        (
            "capframex",
            {"Info": {"ProcessName": "g.exe"}, "Runs": [{"CaptureData": data}]},
        ),
        ("perfdog", [row, row]),
        (
            "macrobenchmark",
            {
                "context": {"build": {"model": "P"}},
                "benchmarks": [{"name": "b", "metrics": {}, "sampledMetrics": sampled}],
            },
        ),
        ("webrtc", [counters, {**counters, "framesDecoded": 400}]),
    ]


def write_nsys_database(path: Path) -> None:
    """An export of Nsight Systems with presents and NVTX ranges."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
            "CREATE TABLE DX12_API (start INT, end INT, nameId INT, globalTid INT);"
            "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT,"
            " textId INT);"
            "INSERT INTO StringIds VALUES (1, 'IDXGISwapChain::Present'),"
            " (2, 'ID3D12Device::CreateFence'), (3, 'frame');"
        )
        for i in range(6):
            start = 1000 + i * 16_000_000
            database.execute(
                "INSERT INTO DX12_API VALUES (?, ?, 1, 7)", (start, start + 50)
            )
            database.execute("INSERT INTO DX12_API VALUES (?, ?, 2, 7)", (start, start))
            database.execute(
                "INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, NULL, 3)", (start, start + 9)
            )
        database.commit()
