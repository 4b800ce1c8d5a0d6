"""GPU allocations in Python's own `tracemalloc`, a domain for each source and device.

```python
from pytest_veo import tracemalloc_ext

tracemalloc_ext.start(nframe=10)
run_model()
snapshot = tracemalloc_ext.take_snapshot()
for each in tracemalloc_ext.statistics(snapshot):
    print(each.domain.label, each.size_bytes, each.count)
top = tracemalloc_ext.only(snapshot, "cupy").statistics("lineno")
tracemalloc_ext.stop()
```

Snapshots are ordinary `tracemalloc.Snapshot` objects, so everything that reads those
reads these. Sources are looked for in `sys.modules` only: nothing is imported and no
device is initialised. While it is off, nothing is hooked and nothing costs anything.

What to know: `tracemalloc.get_traced_memory` includes the GPU domains while this is on
(`traced_host_bytes` does not); a block allocated before `start` has no trace; a tracing
that the user began is never stopped or restarted.
"""

from __future__ import annotations

from pytest_veo.tracemalloc_ext.core import Domain
from pytest_veo.tracemalloc_ext.core import DomainStatistic
from pytest_veo.tracemalloc_ext.core import domains
from pytest_veo.tracemalloc_ext.core import is_tracking
from pytest_veo.tracemalloc_ext.core import labels
from pytest_veo.tracemalloc_ext.core import notes
from pytest_veo.tracemalloc_ext.core import only
from pytest_veo.tracemalloc_ext.core import start
from pytest_veo.tracemalloc_ext.core import statistics
from pytest_veo.tracemalloc_ext.core import stop
from pytest_veo.tracemalloc_ext.core import take_snapshot
from pytest_veo.tracemalloc_ext.core import traced_host_bytes
from pytest_veo.tracemalloc_ext.core import track
from pytest_veo.tracemalloc_ext.core import untrack


__all__ = [
    "Domain",
    "DomainStatistic",
    "domains",
    "is_tracking",
    "labels",
    "notes",
    "only",
    "start",
    "statistics",
    "stop",
    "take_snapshot",
    "traced_host_bytes",
    "track",
    "untrack",
]
