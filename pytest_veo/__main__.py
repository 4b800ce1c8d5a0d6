"""`python -m pytest_veo`: the `veo` command where scripts are not on PATH."""

from __future__ import annotations

import sys

from pytest_veo.cli import main


if __name__ == "__main__":
    sys.exit(main())
