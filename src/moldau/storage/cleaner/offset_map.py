"""The cleaner's offset map: the last offset of every key in the dirty part of a log.

Keys are kept as 16-byte digests in memory of a fixed size (25 bytes for each entry; Apache Kafka's map needs
24), because `log.cleaner.dedupe.buffer.size` is a promise about memory: a dictionary would need five times as
much. A table of one byte for each slot, zero when the slot is free, keeps the search away from the large
table. Entries are never removed; collisions are resolved by double hashing, which visits every slot because
the number of slots is prime. The map is never written anywhere, so the digest is free to be the quickest one
available, and the position of an entry may depend on the process.

Keys are passed per batch, and both methods search inline: calls would double the cost.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2s
from math import isqrt
from struct import Struct

ENTRY_SIZE = 25
_DIGEST_SIZE = 16
_ROW_SIZE = 24
_ROW = Struct("<16sq")
_OFFSET = Struct("<q")


class OffsetMap:
    """Maps the digest of a key to its last offset. `latest_offset` is the last offset indexed."""

    __slots__ = ("_rows", "_slots", "_tags", "capacity", "latest_offset", "size")

    def __init__(self, memory: int, load_factor: float, expected_keys: int | None = None) -> None:
        """With fewer `expected_keys` than fit into `memory`, the table is smaller."""
        slots = memory // ENTRY_SIZE
        if slots * load_factor <= 1:
            raise ValueError(
                "the offset map is too small to hold a single key: increase log.cleaner.dedupe.buffer.size"
            )
        if expected_keys is not None:
            slots = min(slots, 2 * max(expected_keys, 8))
        self._slots = _prime_at_most(slots)
        self.capacity = min(max(1, int(self._slots * load_factor)), self._slots - 1)
        self._tags = bytearray(self._slots)
        self._rows = bytearray(self._slots * _ROW_SIZE)
        self.size = 0
        self.latest_offset = -1

    @property
    def utilization(self) -> float:
        return self.size / self._slots

    def put_all(self, entries: Iterable[tuple[bytes | None, int]]) -> int | None:
        """Store the offsets of keys; return the first offset whose key finds no room, or None.

        Later offsets are not stored then. Offsets without a key are ignored.
        """
        tags, rows, slots, capacity = self._tags, self._rows, self._slots, self.capacity
        for key, offset in entries:
            if key is None:
                continue
            digest = blake2s(key, digest_size=_DIGEST_SIZE).digest()
            place = hash(digest)
            slot = place % slots
            tag = digest[0] | 1
            while found := tags[slot]:
                position = slot * _ROW_SIZE
                if found == tag and rows[position : position + _DIGEST_SIZE] == digest:
                    break
                slot = (slot + 1 + (place >> 7) % (slots - 1)) % slots
            else:
                if self.size >= capacity:
                    return offset
                self.size += 1
                tags[slot] = tag
            _ROW.pack_into(rows, slot * _ROW_SIZE, digest, offset)
        return None

    def get_all(self, keys: Iterable[bytes | None]) -> list[int]:
        """The last offset stored for each key, -1 if there is none."""
        tags, rows, slots = self._tags, self._rows, self._slots
        offsets: list[int] = []
        for key in keys:
            offset = -1
            if key is not None:
                digest = blake2s(key, digest_size=_DIGEST_SIZE).digest()
                place = hash(digest)
                slot = place % slots
                tag = digest[0] | 1
                while found := tags[slot]:
                    position = slot * _ROW_SIZE
                    if found == tag and rows[position : position + _DIGEST_SIZE] == digest:
                        offset = _OFFSET.unpack_from(rows, position + _DIGEST_SIZE)[0]
                        break
                    slot = (slot + 1 + (place >> 7) % (slots - 1)) % slots
            offsets.append(offset)
        return offsets


def _prime_at_most(number: int) -> int:
    """The largest prime that is not above `number`, at least 3 so that a probe step exists."""
    candidate = max(3, number)
    if candidate % 2 == 0:
        candidate -= 1
    while any(candidate % divisor == 0 for divisor in range(3, isqrt(candidate) + 1, 2)):
        candidate -= 2
    return candidate
