"""A folder of this machine for records that their archive has not taken yet.

It is an archive like any other: `veo merge SPOOL -o ARCHIVE` puts them in place.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pytest_veo.errors import ArchiveError


def spool_folder() -> Path:
    """The archive where runs wait to be sent; made if it is not there.

    Raises:
        ArchiveError: neither the cache nor the temporary folder can be written.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    candidates = [
        cache / "pytest-veo" / "spool",
        Path(tempfile.gettempdir()) / f"pytest-veo-spool-{os.getuid()}",
    ]
    for folder in candidates:
        try:
            (folder / "runs").mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder / "runs", os.W_OK):
            return folder
    tried = " nor ".join(str(folder) for folder in candidates)
    raise ArchiveError(f"cannot keep records before they are sent: neither {tried}")
