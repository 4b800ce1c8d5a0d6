"""Device allocations by identity: which blocks exist now and did not before.

Light looks list addresses and sizes. Stacks cost more and are recorded in the evidence
run only. Nothing is imported or initialised here.
"""

from __future__ import annotations

import collections
import dataclasses
import sys
from typing import Any

from pytest_veo.evidence import stacks


_ACTIVE = ("active_allocated", "active_awaiting_free")
_MOST_ENTRIES = 100_000
_MOST_SITES = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """One allocation of a device allocator."""

    source: str
    device: str
    address: int
    size_bytes: int
    """As requested, not as rounded."""
    pool: str = ""
    """The private pool it is in (a graph's, a MemPool's); empty for the common one."""
    where: str = ""
    line: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSite:
    """Blocks of one line, on one device."""

    source: str
    device: str
    where: str
    """`model.py:12`; empty when the stack was not recorded."""
    line: str
    bytes_per_run: float
    blocks_per_run: float
    pool: str = ""


Identity = tuple[str, str, int]


def look() -> dict[Identity, Block]:
    """Every live device allocation that a library can list."""
    blocks = (*_torch_blocks(), *_jax_blocks())
    return {(each.source, each.device, each.address): each for each in blocks}


def grown(
    before: dict[Identity, Block], after: dict[Identity, Block], runs: int
) -> tuple[DeviceSite, ...]:
    """The new blocks, by line; a swap for one of equal size is seen as well."""
    groups: dict[tuple[str, str, str, str], list[Block]] = collections.defaultdict(list)
    for identity, block in after.items():
        if identity not in before:
            key = block.source, block.device, block.where, block.pool
            groups[key].append(block)
    found = [
        DeviceSite(
            source=source,
            device=device,
            where=where,
            line=blocks[0].line,
            bytes_per_run=sum(each.size_bytes for each in blocks) / runs,
            blocks_per_run=len(blocks) / runs,
            pool=pool,
        )
        for (source, device, where, pool), blocks in groups.items()
        if len(blocks) * 2 >= runs
    ]
    found.sort(key=lambda each: -each.bytes_per_run)
    return tuple(found[:_MOST_SITES])


def _torch_cuda() -> Any:
    """`torch.cuda` if it is imported and initialised, else None."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    return cuda


def _torch_blocks() -> list[Block]:
    cuda = _torch_cuda()
    if cuda is None:
        return []
    found = []
    for segment in cuda.memory_snapshot():
        address = int(segment["address"])
        pool = tuple(segment.get("segment_pool_id", (0, 0)))
        for block in segment["blocks"]:
            at = int(block.get("address", address))
            address = at + int(block["size"])
            if block["state"] in _ACTIVE:
                found.append(_torch_block(segment, block, at, pool))
    return found


def _torch_block(
    segment: dict[str, Any], block: dict[str, Any], address: int, pool: tuple[int, ...]
) -> Block:
    frames = [
        (str(frame["filename"]), int(frame["line"]))
        for frame in block.get("frames", ())
        if frame["filename"] != "??"
    ]
    line = stacks.users(stacks.trimmed(frames))
    return Block(
        source="torch",
        device=f"cuda:{segment['device']}",
        address=address,
        size_bytes=int(block.get("requested_size", block["size"])),
        pool="" if not any(pool) else f"private pool {pool}",
        where="" if line is None else str(line),
        line="" if line is None else line.source,
    )


def _jax_blocks() -> list[Block]:
    jax = sys.modules.get("jax")
    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    if jax is None or not getattr(bridge, "_backends", None):
        return []  # live_arrays would start a backend
    return [
        Block(
            source="jax",
            device=str(next(iter(array.devices()), "")),
            address=id(array),
            size_bytes=int(array.nbytes),
            where="",
            line=f"{array.dtype}{list(array.shape)}",
        )
        for array in jax.live_arrays()
        if not array.is_deleted()
    ]


class History:
    """torch's record of the stacks of allocations, for the evidence run."""

    def __init__(self) -> None:
        self._cuda: Any = None
        self.note = ""

    def begin(self) -> None:
        """Start to record, unless torch is not in use or the user records already."""
        cuda = _torch_cuda()
        if cuda is None:
            return
        is_recording = getattr(sys.modules["torch"]._C, "_cuda_isHistoryEnabled", None)
        if is_recording is not None and is_recording():
            self.note = "torch's memory history was on already and is used as it is"
            return
        record = cuda.memory._record_memory_history
        try:
            record(
                enabled="state",
                context="alloc",
                stacks="python",
                max_entries=_MOST_ENTRIES,
            )
        except (TypeError, RuntimeError) as error:
            self.note = f"torch's memory history could not be recorded: {error}"
            return
        self._cuda = cuda

    def end(self) -> None:
        """Stop recording if `begin` started it."""
        cuda, self._cuda = self._cuda, None
        if cuda is not None:
            cuda.memory._record_memory_history(enabled=None)
