"""Tells a torn tail, which recovery may cut off, from damage to metadata that was committed.

A crash can only spoil the end of the log: records that were written but not yet on disk, and so were never
acknowledged. Recovery cuts at the first bad batch. If good batches of a later write follow it, the bad one
was on disk before them and has been damaged since; cutting there would silently forget topics and settings
that exist. A node refuses to start from such a log.

Batches written together carry one timestamp and later writes a later one (`MetadataLog`), so more than one
timestamp behind the damage means more than one write behind it.
"""

from __future__ import annotations

from collections.abc import Iterator

from moldau.protocol.errors import CorruptBatch
from moldau.protocol.records import BATCH_HEADER_SIZE, BatchHeader, check_crc, read_batch_header
from moldau.quorum.errors import UnusableMetadata
from moldau.storage.disk import Disk

_MAGIC_POSITION = 16
_MAGIC = b"\x02"


def check_log(disk: Disk, folder: str) -> None:
    """Raise UnusableMetadata if the metadata log is damaged anywhere but at its end."""
    if not disk.exists(folder):
        return
    names = [name for name in disk.listdir(folder) if name.endswith(".log")]
    for number, name in enumerate(names):
        path = f"{folder}/{name}"
        data = _content(disk, path)
        position = _first_damage(data)
        if position == len(data):
            continue
        is_last = number == len(names) - 1
        if not is_last or _writes_behind(data, position) > 1:
            raise UnusableMetadata(
                f"The metadata log is damaged: {path} holds a bad batch at position {position}, with good "
                "ones behind it. Restore the folder from a copy; cutting the log there would lose topics and "
                "settings."
            )


def _content(disk: Disk, path: str) -> memoryview:
    """The file without reading it into memory, where that works; nobody cuts it before the check is over."""
    size = disk.size(path)
    mapped = disk.open(path, read_only=True).map(0, size) if size else None
    return memoryview(disk.read_bytes(path)) if mapped is None else mapped


def _first_damage(data: memoryview) -> int:
    """Where the first bad batch begins; the end of the data if all are good."""
    position = 0
    while position < len(data):
        header = _good_batch(data, position)
        if header is None:
            return position
        position += header.size_in_bytes
    return position


def _writes_behind(data: memoryview, damage: int) -> int:
    return len({header.max_timestamp for header in _batches_behind(data, damage)})


def _batches_behind(data: memoryview, damage: int) -> Iterator[BatchHeader]:
    """Good batches somewhere behind the damage, found by their magic byte and their checksum."""
    raw = bytes(data)
    position = damage + 1
    while (found := raw.find(_MAGIC, position + _MAGIC_POSITION)) >= 0:
        position = found - _MAGIC_POSITION
        header = _good_batch(data, position)
        if header is None:
            position += 1
        else:
            yield header
            position += header.size_in_bytes


def _good_batch(data: memoryview, position: int) -> BatchHeader | None:
    if len(data) - position < BATCH_HEADER_SIZE:
        return None
    try:
        header = read_batch_header(data, position)
    except CorruptBatch:
        return None
    if position + header.size_in_bytes > len(data) or not check_crc(data, position, header):
        return None
    return header
