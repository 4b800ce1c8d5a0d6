"""The host's figures where a system offers less than Linux with glibc."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from pytest_veo.probes.host import HEAP
from pytest_veo.probes.host import MAPPED
from pytest_veo.probes.host import SHARED
from pytest_veo.probes.host import HostProbe


def test_without_proc_each_figure_that_is_missing_is_named(tmp_path: Path) -> None:
    probe = HostProbe(tmp_path)
    probe.open()
    assert [str(trouble) for trouble in probe.troubles] == [
        "host.mapped: unavailable, needs /proc/self/statm and mallinfo2",
        "host.shared: unavailable, no /proc/self/statm",
        "host.descriptors: unavailable, no /proc/self/fd",
        "host.children: unavailable, no /proc/self/task/*/children",
    ]
    assert len(probe.glance()) == len(probe.counters)
    probe.close()


def test_mappings_are_watched_beside_an_allocator_that_is_not_glibcs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pytest_veo.probes.host._find_mallinfo", lambda: None)
    probe = HostProbe()
    probe.open()
    place = probe.counters.index(SHARED)
    assert not {HEAP, MAPPED} & {*probe.counters}
    before = probe.glance()[place]
    with mmap.mmap(-1, 4 << 20):
        assert probe.glance()[place] - before == 4 << 20
    probe.close()
