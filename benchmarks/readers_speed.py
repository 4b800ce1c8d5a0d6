"""Each table reader beside `pandas.read_csv` on the same file, and its memory.

    python benchmarks/readers_speed.py --rows 1000000
    python benchmarks/readers_speed.py --rows 10000000 --only presentmon --memory

Files are written to a temporary folder. Each figure is the best of several runs; with
`--memory` one run in a process of its own tells the peak of resident memory.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np


PRESENTS = (
    "Application,ProcessID,SwapChainAddress,Runtime,SyncInterval,PresentFlags,"
    "AllowsTearing,PresentMode,Dropped,TimeInSeconds,MsBetweenPresents,"
    "MsBetweenDisplayChange,MsInPresentAPI,MsUntilRenderComplete,MsUntilDisplayed"
)
BLOCK = 50_000


def frame_times(rng: np.random.Generator, count: int) -> np.ndarray:
    """Frame times in milliseconds, 60 Hz with some spread."""
    return np.round(rng.gamma(64, 16.667 / 64, count), 3)


def presentmon(ms: np.ndarray, seconds: np.ndarray, first: int) -> str:
    """PresentMon 1.x: 15 columns."""
    return "".join(
        f"game.exe,13456,0x000002604A44FD30,DXGI,0,0,0,Composed: Flip,0,{t:.6f},"
        f"{m:.3f},{m:.3f},1.339,9.828,22.434\n"
        for t, m in zip(seconds.tolist(), ms.tolist(), strict=True)
    )


def default(ms: np.ndarray, seconds: np.ndarray, first: int) -> str:
    """PresentMon 2.3.1 and later with missing values."""
    return "".join(
        f"game.exe,13456,0x2604A44FD30,DXGI,0,0,0,Flip,Application,{t:.6f},NA,{m:.4f},"
        f"{m:.4f},0.0893,0.0673,{'NA' if i % 50 == 0 else '16.4296'},NA,16.3893,NA\n"
        for i, (t, m) in enumerate(zip(seconds.tolist(), ms.tolist(), strict=True))
    )


def frameview(ms: np.ndarray, seconds: np.ndarray, first: int) -> str:
    """FrameView: 55 columns, most of them missing."""
    tail = ", 45,NA,2738,8917" + ",NA" * 34
    return "".join(
        f"game.exe,RTX,CPU,3840x2160,D3D12,0,42,0xAB,0,0,Flip,0,{t:.6f},{m:.3f},{m:.3f},"
        f"1.0,2.0,50.0{tail}\n"
        for t, m in zip(seconds.tolist(), ms.tolist(), strict=True)
    )


def mangohud(ms: np.ndarray, seconds: np.ndarray, first: int) -> str:
    """MangoHud 0.8."""
    return "".join(
        f"{1000 / m:.3f},{m:.5g},21.6521,0,84,54,51,3121,1358,4.93264,255,10.734,0,0,"
        f"{round(t * 1e9)}\n"
        for t, m in zip(seconds.tolist(), ms.tolist(), strict=True)
    )


def plain(ms: np.ndarray, seconds: np.ndarray, first: int) -> str:
    """Two columns of whole numbers."""
    return "".join(
        f"{first + i},{round(t * 1e9)}\n" for i, t in enumerate(seconds.tolist())
    )


def intervals(ms: np.ndarray, seconds: np.ndarray, first: int) -> str:
    """Two columns with decimals, of different lengths."""
    return "".join(
        f"{t * 1000:.3f},{m:.4f}\n"
        for t, m in zip(seconds.tolist(), ms.tolist(), strict=True)
    )


def nsys(ms: np.ndarray, seconds: np.ndarray, first: int) -> str:
    """A trace of NVTX ranges of Nsight Systems."""
    return "".join(
        f"{round(t * 1e9)},{round(t * 1e9) + 9000},9000,0,9000,frame,77,78\n"
        for t in seconds.tolist()
    )


def afterburner(ms: np.ndarray, seconds: np.ndarray, first: int) -> str:
    """Afterburner's hardware log: twelve padded columns, a row a second."""
    sensors = ",".join(f"{value:<20}" for value in ("51.000", "97.000") * 5)
    start = dt.datetime(2025, 10, 24, 16, 56, 5)  # noqa: DTZ001
    return "".join(
        f"80, {start + dt.timedelta(seconds=first + i):%d-%m-%Y %H:%M:%S},{sensors},"
        f"{1000 / m:<20.3f},{m:<20.3f}\n"
        for i, m in enumerate(ms.tolist())
    )


AFTERBURNER = "{}, 24-10-2025 16:56:05, {}\n"
HEADERS = {
    "presentmon": PRESENTS,
    "default": (
        "Application,ProcessID,SwapChainAddress,PresentRuntime,SyncInterval,"
        "PresentFlags,AllowsTearing,PresentMode,FrameType,TimeInSeconds,"
        "MsBetweenSimulationStart,MsBetweenPresents,MsBetweenDisplayChange,"
        "MsInPresentAPI,MsRenderPresentLatency,MsUntilDisplayed,MsPCLatency,"
        "MsBetweenAppStart,MsAnimationError"
    ),
    "frameview": (
        "Application,GPU,CPU,Resolution,Runtime,AllowsTearing,ProcessID,"
        "SwapChainAddress,SyncInterval,PresentFlags,PresentMode,Dropped,TimeInSeconds,"
        "MsBetweenPresents,MsBetweenDisplayChange,MsInPresentAPI,"
        "MsRenderPresentLatency,MsUntilDisplayed,Render Queue Depth,MsPCLatency,"
        "GPU0Clk(MHz),GPU0MemClk(MHz)," + ",".join(f"Sensor{i}" for i in range(34))
    ),
    "mangohud": (
        "os,cpu,gpu,ram,kernel,driver,cpuscheduler\nArch,Ryzen,RX,1,6,,performance\n"
        "fps,frametime,cpu_load,cpu_power,gpu_load,cpu_temp,gpu_temp,gpu_core_clock,"
        "gpu_mem_clock,gpu_vram_used,gpu_power,ram_used,swap_used,process_rss,elapsed"
    ),
    "plain": "frame_index,t_ns",
    "intervals": "t_ms,frame_ms",
    "nsys": (
        "Start (ns),End (ns),Duration (ns),DurChild (ns),DurNonChild (ns),Name,PID,TID"
    ),
    "afterburner": (
        AFTERBURNER.format("00", "Hardware monitoring log v1.6")
        + AFTERBURNER.format("01", "NVIDIA GeForce RTX 4070")
        + "02, 24-10-2025 16:56:05, "
        + ",".join(f"Sensor {i}" for i in range(10))
        + ",Framerate,Frametime"
    ),
}
ROWS: dict[str, Callable[[np.ndarray, np.ndarray, int], str]] = {
    "presentmon": presentmon,
    "default": default,
    "frameview": frameview,
    "mangohud": mangohud,
    "plain": plain,
    "intervals": intervals,
    "nsys": nsys,
    "afterburner": afterburner,
}


def write(path: Path, name: str, rows: int) -> None:
    """Write a capture of `rows` frames."""
    rng = np.random.default_rng(1)
    end = 0.0
    with path.open("w") as file:
        file.write(HEADERS[name] + "\n")
        for first in range(0, rows, BLOCK):
            ms = frame_times(rng, min(BLOCK, rows - first))
            seconds = end + np.cumsum(ms) / 1000
            end = float(seconds[-1])
            file.write(ROWS[name](ms, seconds, first))


def best(run: Callable[[], object], times: int) -> tuple[float, float]:
    """The shortest of several runs: seconds, and seconds of all processors."""
    spent = []
    for _ in range(times):
        start, used = time.perf_counter(), time.process_time()
        run()
        spent.append((time.perf_counter() - start, time.process_time() - used))
    return min(wall for wall, _ in spent), min(cpu for _, cpu in spent)


def compare(path: Path, name: str, rows: int, times: int) -> None:
    """Print both times and their ratios."""
    pandas = importlib.import_module("pandas")
    readers = importlib.import_module("pytest_veo.readers")
    skip = HEADERS[name].count("\n")
    theirs = best(lambda: pandas.read_csv(path, skiprows=skip), times)
    ours = best(lambda: readers.read_capture(path), times)
    size = path.stat().st_size / 1e6
    print(
        f"{name:<12}{rows:>10} rows {size:>6.0f} MB  ours {ours[0]:6.3f} s "
        f"(cpu {ours[1]:6.3f})  pandas {theirs[0]:6.3f} s (cpu {theirs[1]:6.3f})  "
        f"{theirs[0] / ours[0]:5.2f} times as fast (cpu {theirs[1] / ours[1]:5.2f})",
        flush=True,
    )


def peak(path: Path) -> None:
    """Read once and print the peak of resident memory of this process."""
    readers = importlib.import_module("pytest_veo.readers")
    series = readers.read_capture(path).series
    status = Path("/proc/self/status").read_text()
    most = int(status.partition("VmHWM:")[2].split()[0])
    print(f"peak {most / 1024:.0f} MiB for {len(series[0])} frames", flush=True)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--only", choices=ROWS)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.read:
        return peak(args.read)
    arrow = importlib.util.find_spec("pyarrow") is not None
    print(f"pyarrow {'is' if arrow else 'is not'} installed", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in [args.only] if args.only else ROWS:
            path = Path(folder) / f"{name}.csv"
            write(path, name, args.rows)
            compare(path, name, args.rows, args.times)
            if args.memory:
                subprocess.run([sys.executable, __file__, "--read", path], check=True)
            path.unlink()
    return None


if __name__ == "__main__":
    main()
