"""Coverage-guided fuzzing of one reader: no crash but our own error.

    pip install atheris
    python benchmarks/readers_fuzz.py mangohud --seconds 600

Names are those of `tests/readers/samples.py`, `nsys` and `video`; each starts from its
sample. A crash leaves its input in the folder it was started in, and ends with a
status other than 0.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.readers.samples import texts
from tests.readers.samples import write_nsys_database


def sample_of(name: str, folder: Path) -> bytes:
    """The bytes of a sound capture."""
    file = folder / "sample"
    if name == "nsys":
        write_nsys_database(file)
    elif name == "video":
        write_clip = importlib.import_module("tests.readers.test_video").write_clip
        file = folder / "sample.mp4"
        write_clip(file, [0, 1500, 4500, 6000])
    else:
        return texts()[name].encode()
    return file.read_bytes()


def main() -> None:
    """Fuzz until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=[*texts(), "nsys", "video"])
    parser.add_argument("--seconds", type=int, default=600)
    args = parser.parse_args()
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["pytest_veo.readers"]):
        survives = importlib.import_module("tests.readers.test_fuzz").survives
        importlib.import_module("pytest_veo.readers.registry").readers()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        corpus = folder / "corpus"
        corpus.mkdir()
        sample = sample_of(args.name, folder)
        (corpus / "whole").write_bytes(sample)
        (corpus / "half").write_bytes(sample[: len(sample) // 2])
        file = folder / "capture"

        def check(data: bytes) -> None:
            file.write_bytes(data)
            survives(file)

        options = [
            f"-max_total_time={args.seconds}",
            f"-max_len={max(4096, 2 * len(sample))}",
            # Instrumented code grows by itself, past 7 GB in seven minutes; the same
            # files read without it leave memory flat.
            "-rss_limit_mb=8192",
            "-timeout=20",
            "-print_final_stats=1",
            "-verbosity=0",
        ]
        atheris.Setup([sys.argv[0], *options, os.fspath(corpus)], check)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
