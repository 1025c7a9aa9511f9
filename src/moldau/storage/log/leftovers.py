"""Completing or undoing an interrupted deletion or compaction before a log is opened.

The cleaner replaces segments by renaming `.cleaned` to `.swap` (last to first), the old ones to `.deleted`,
and `.swap` to no suffix; a crash may happen between any two renames. If a `.cleaned` file exists, the first
step was not complete: the old segments still exist, and `.swap` files from its offset on are of no use.
Otherwise the `.swap` files are complete and replace the old segments.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from moldau.protocol.records import CorruptBatch
from moldau.storage.disk.disk import Disk
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.log.config import LogConfig
from moldau.storage.segment.files import CLEANED, DELETED, KINDS, LOG, SWAP, TRUNCATED, file_name
from moldau.storage.segment.segment import Segment

#: Snapshots of the metadata log are deleted by the quorum.
_NOT_OURS = f".checkpoint{DELETED}"

logger = logging.getLogger(__name__)


def settle_leftovers(files: OpenFiles, directory: str, config: LogConfig) -> list[str]:
    """Complete or undo what was interrupted; return the names of the files that exist afterwards."""
    names = files.disk.listdir(directory)
    if all(name.endswith(_ORDINARY) for name in names) and not _orphaned_indexes(names):
        return names
    disk = files.disk
    cleaned = [name for name in names if name.endswith(CLEANED)]
    first_cleaned = min((_offset(name) for name in cleaned), default=None)
    swaps = [name for name in names if name.endswith(SWAP)]
    useless = [name for name in swaps if first_cleaned is not None and _offset(name) >= first_cleaned]
    stray = [name for name in names if _is_stray(name)]
    _remove(disk, directory, [*stray, *useless, *cleaned])
    finished = [name for name in swaps if name not in useless]
    if finished:
        _remove_replaced(files, directory, config, finished)
        for name in finished:
            logger.info("Completing an interrupted compaction with %s/%s", directory, name)
            disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP)}")
    names = disk.listdir(directory)
    orphans = _orphaned_indexes(names)
    _remove(disk, directory, orphans)
    return [name for name in names if name not in orphans]


_ORDINARY = (*(f".{kind}" for kind in KINDS), ".snapshot", ".metadata", "-checkpoint", ".checkpoint")


def _offset(name: str) -> int:
    digits = name.partition(".")[0]
    return int(digits) if digits.isdecimal() else -1


def _is_stray(name: str) -> bool:
    return (name.endswith(DELETED) and not name.endswith(_NOT_OURS)) or name.endswith((TRUNCATED, ".tmp"))


def _remove(disk: Disk, directory: str, names: Iterable[str]) -> None:
    for name in names:
        logger.info("Removing %s/%s, left by an interrupted change", directory, name)
        disk.remove(f"{directory}/{name}")


def _remove_replaced(files: OpenFiles, directory: str, config: LogConfig, swaps: list[str]) -> None:
    """Remove the segments in the range of offsets that the `.swap` segments cover."""
    bases = [_offset(name) for name in swaps if name.endswith(f".{LOG}{SWAP}")]
    if not bases:
        return
    end = max(_end_of_swap(files, directory, config, base) for base in bases)
    for name in files.disk.listdir(directory):
        if not name.endswith(SWAP) and min(bases) <= _offset(name) < end:
            logger.info("Removing %s/%s, which was compacted", directory, name)
            files.disk.remove(f"{directory}/{name}")


def _end_of_swap(files: OpenFiles, directory: str, config: LogConfig, base_offset: int) -> int:
    segment = Segment.open(files, directory, base_offset, config, suffix=SWAP)
    end = base_offset
    try:
        for batch in segment.batches():
            end = batch.header.next_offset
    except CorruptBatch as error:
        logger.error("%s, in a compacted segment", error)
    segment.files.close()
    return end


def _orphaned_indexes(names: list[str]) -> list[str]:
    present = set(names)
    return [
        name
        for name in names
        if name.endswith((".index", ".timeindex", ".txnindex"))
        and file_name(_offset(name), LOG) not in present
    ]
