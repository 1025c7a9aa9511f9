"""Tells a torn tail, which recovery may cut off, from damage to metadata that was committed.

A crash can only spoil the end of the log: records that were written but not yet on disk, and so were never
acknowledged. Recovery cuts at the first bad batch. If good batches of a later write follow it, the bad one
was on disk before them and has been damaged since; cutting there would silently forget topics and settings
that exist. A node refuses to start from such a log.

Batches that a leader writes together carry one timestamp and later writes a later one (`MetadataLog`), so
more than one timestamp behind the damage means more than one write behind it. A follower writes whatever one
fetch brought, which may be many groups of the leader; so only epochs that this node led itself tell anything.
What a follower loses, its leader still has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moldau.protocol.errors import CorruptBatch, DecodeError
from moldau.protocol.records import BATCH_HEADER_SIZE, BatchHeader, check_crc, read_batch_header
from moldau.protocol.stored.control import LeaderChangeMessage
from moldau.quorum.batches import read_batches
from moldau.quorum.errors import UnusableMetadata
from moldau.storage.disk.disk import Disk

_MAGIC_POSITION = 16
_MAGIC = b"\x02"


def check_log(disk: Disk, folder: str, node_id: int, led_epoch: int) -> None:
    """Raise UnusableMetadata if the metadata log is damaged anywhere but at its end.

    `led_epoch` is the epoch that this node was leading when it ended; -1: it was not.
    """
    if not disk.exists(folder):
        return
    paths = [f"{folder}/{name}" for name in disk.listdir(folder) if name.endswith(".log")]
    contents = [_content(disk, path) for path in paths]
    for number, (path, data) in enumerate(zip(paths, contents, strict=True)):
        position = _first_damage(data)
        if position == len(data):
            continue
        if _is_committed(contents, number, position, node_id, led_epoch):
            raise UnusableMetadata(
                f"The metadata log is damaged: {path} holds a bad batch at position {position}, with good "
                "ones behind it. Restore the folder from a copy; cutting the log there would lose topics and "
                "settings."
            )
        return


def _is_committed(
    contents: Sequence[memoryview], damaged: int, position: int, node_id: int, led_epoch: int
) -> bool:
    """Whether writes of this node as a leader follow the damage: a second one, or one in another segment."""
    led = {led_epoch}
    for data in contents:
        led.update(_epochs_led(data, node_id))
    behind = _good_batches(contents[damaged], position + 1)
    writes = {header.max_timestamp for _, header in behind if header.partition_leader_epoch in led}
    later = (header for data in contents[damaged + 1 :] for _, header in _good_batches(data))
    return len(writes) > 1 or any(header.partition_leader_epoch in led for header in later)


def _epochs_led(data: memoryview, node_id: int) -> Iterator[int]:
    """Epochs whose first record says that this node led them."""
    for position, header in _good_batches(data):
        if header.is_control and _leader_in(data[position : position + header.size_in_bytes]) == node_id:
            yield header.partition_leader_epoch


def _leader_in(batch: memoryview) -> int:
    try:
        messages = [message for found in read_batches(batch) for message in found.control]
    except (CorruptBatch, DecodeError):
        return -1
    return next((each.leader_id for each in messages if isinstance(each, LeaderChangeMessage)), -1)


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


def _good_batches(data: memoryview, start: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Good batches and their positions, wherever they begin: found by their magic byte and their checksum."""
    raw = bytes(data)
    position = start
    while (found := raw.find(_MAGIC, position + _MAGIC_POSITION)) >= 0:
        position = found - _MAGIC_POSITION
        header = _good_batch(data, position)
        if header is None:
            position += 1
        else:
            yield position, header
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
