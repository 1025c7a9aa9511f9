"""Distinguishes a torn tail of the log, which recovery may truncate, from damage to committed records.

A crash can damage only the end of the log: records that were written but not synced, and so were never
acknowledged. Recovery truncates at the first invalid batch. If valid batches of a later write follow it, the
invalid batch was durable before them and has been damaged since; truncating there would silently lose topics
and configs. A node does not start from such a log.

The batches that a leader writes together have one timestamp, and each write has a later one (`MetadataLog`),
so two timestamps after the damage prove two writes after it. A follower writes all records of a fetch at
once, which may be many writes of the leader; so only the epochs that this node led count. Records that a
follower loses are still at the leader.
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
    """Raise UnusableMetadata if the metadata log is damaged before its end.

    `led_epoch` is the epoch that this node led when it stopped; -1 if it was not the leader.
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
                f"The metadata log is damaged: {path} has an invalid batch at position {position}, followed "
                "by valid ones. Restore the folder from a backup; truncating the log there would lose topics "
                "and configs."
            )
        return


def _is_committed(
    contents: Sequence[memoryview], damaged: int, position: int, node_id: int, led_epoch: int
) -> bool:
    """Whether writes of this node as leader follow the damage: two in its segment, or one in a later
    segment."""
    led = {led_epoch}
    for data in contents:
        led.update(_epochs_led(data, node_id))
    following = _valid_batches(contents[damaged], position + 1)
    writes = {header.max_timestamp for _, header in following if header.partition_leader_epoch in led}
    later = (header for data in contents[damaged + 1 :] for _, header in _valid_batches(data))
    return len(writes) > 1 or any(header.partition_leader_epoch in led for header in later)


def _epochs_led(data: memoryview, node_id: int) -> Iterator[int]:
    """Yield the epochs whose LeaderChange record names this node."""
    for position, header in _valid_batches(data):
        if header.is_control and _leader_in(data[position : position + header.size_in_bytes]) == node_id:
            yield header.partition_leader_epoch


def _leader_in(batch: memoryview) -> int:
    try:
        messages = [message for found in read_batches(batch) for message in found.control]
    except (CorruptBatch, DecodeError):
        return -1
    return next((each.leader_id for each in messages if isinstance(each, LeaderChangeMessage)), -1)


def _content(disk: Disk, path: str) -> memoryview:
    """Map the file into memory if the disk supports it. It must not be truncated while mapped."""
    size = disk.size(path)
    mapped = disk.open(path, read_only=True).map(0, size) if size else None
    return memoryview(disk.read_bytes(path)) if mapped is None else mapped


def _first_damage(data: memoryview) -> int:
    """Return the position of the first invalid batch; the end of the data if there is none."""
    position = 0
    while position < len(data):
        header = _valid_batch(data, position)
        if header is None:
            return position
        position += header.size_in_bytes
    return position


def _valid_batches(data: memoryview, start: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield valid batches and their positions, at any position: found by magic byte and checksum."""
    raw = bytes(data)
    position = start
    while (found := raw.find(_MAGIC, position + _MAGIC_POSITION)) >= 0:
        position = found - _MAGIC_POSITION
        header = _valid_batch(data, position)
        if header is None:
            position += 1
        else:
            yield position, header
            position += header.size_in_bytes


def _valid_batch(data: memoryview, position: int) -> BatchHeader | None:
    if len(data) - position < BATCH_HEADER_SIZE:
        return None
    try:
        header = read_batch_header(data, position)
    except CorruptBatch:
        return None
    if position + header.size_in_bytes > len(data) or not check_crc(data, position, header):
        return None
    return header
