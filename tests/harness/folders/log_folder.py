"""A consistency check of a partition's files, independent of the product's own readers.

Every `.index` entry must point to the start of a batch that contains its offset, every `.timeindex` entry to
an offset with its timestamp, and the batches of all segments must be contiguous.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

from fastcrc import crc32

_HEADER = struct.Struct(">qiibIhiqqqhii")


class StoredBatch(NamedTuple):
    position: int
    base_offset: int
    last_offset: int
    max_timestamp: int


def check_partition_folder(folder: Path) -> int:
    """Check all files; return the log end offset."""
    end = 0
    segments = sorted(folder.glob("*.log"))
    assert segments, f"no segments in {folder}"
    for path in segments:
        base = int(path.stem)
        assert base >= end, f"{path} starts before the end of the previous one"
        batches = read_batches(path)
        check_offset_index(path.with_suffix(".index"), base, batches)
        check_time_index(path.with_suffix(".timeindex"), base, batches)
        end = batches[-1].last_offset + 1 if batches else base
    assert not list(folder.glob("*.cleaned")), "leftovers of the cleaner"
    assert not list(folder.glob("*.swap")), "leftovers of the cleaner"
    return end


def read_batches(path: Path) -> list[StoredBatch]:
    data = path.read_bytes()
    batches: list[StoredBatch] = []
    position = 0
    expected = int(path.stem)
    while position < len(data):
        fields = _HEADER.unpack_from(data, position)
        base_offset, length, _, magic, crc, _, last_delta, _, max_timestamp = fields[:9]
        where = f"{path} at {position}"
        assert magic == 2, where
        assert base_offset == expected, f"{where}: offset {base_offset}, expected {expected}"
        assert fields[12] == last_delta + 1, f"{where}: count and last offset delta disagree"
        assert crc32.iscsi(data[position + 21 : position + 12 + length]) == crc, f"{where}: checksum"
        batches.append(StoredBatch(position, base_offset, base_offset + last_delta, max_timestamp))
        expected = base_offset + last_delta + 1
        position += 12 + length
    assert position == len(data), f"{path} ends inside a batch"
    return batches


def check_offset_index(path: Path, base: int, batches: list[StoredBatch]) -> None:
    data = path.read_bytes()
    by_position = {batch.position: batch for batch in batches}
    previous = -1
    for relative, position in _entries(data, ">ii"):
        batch = by_position.get(position)
        assert batch is not None, f"{path}: position {position} is not the start of a batch"
        assert batch.base_offset <= base + relative <= batch.last_offset, f"{path}: {base + relative}"
        assert position > previous, f"{path}: positions must grow"
        previous = position


def check_time_index(path: Path, base: int, batches: list[StoredBatch]) -> None:
    previous = (-1, -1)
    for timestamp, relative in _entries(path.read_bytes(), ">qi"):
        offset = base + relative
        assert timestamp > previous[0] and offset > previous[1], f"{path}: entries must grow"
        holder = [batch for batch in batches if batch.base_offset <= offset <= batch.last_offset]
        assert holder, f"{path}: offset {offset} is not in the segment"
        largest = max(batch.max_timestamp for batch in batches if batch.base_offset <= offset)
        assert timestamp == largest, f"{path}: {timestamp} is not the largest timestamp up to {offset}"
        previous = (timestamp, offset)


def _entries(data: bytes, form: str) -> list[tuple[int, int]]:
    """Yield the entries before the zeros of a preallocated file."""
    entry = struct.Struct(form)
    entries: list[tuple[int, int]] = []
    for start in range(0, len(data) - len(data) % entry.size, entry.size):
        first, second = entry.unpack_from(data, start)
        if entries and (first, second) == (0, 0):
            break
        if (first, second) != (0, 0):
            entries.append((first, second))
    return entries
