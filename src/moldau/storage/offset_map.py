"""The cleaner's memory: for every key of the dirty part of a log, the last offset that has it.

Keys are kept as 16-byte digests in memory of a fixed size (25 bytes for each entry; Apache Kafka's map needs
24), because `log.cleaner.dedupe.buffer.size` is a promise about memory: a dictionary would need five times as
much. A table of one byte for each slot, zero when the slot is free, keeps the search away from the large
table. Entries are never removed; collisions are resolved by double hashing, which visits every slot because
the number of slots is prime. The map is never written anywhere, so the digest is free to be the quickest one
at hand, and the place of an entry may depend on the process.
"""

from __future__ import annotations

from hashlib import blake2s
from math import isqrt
from struct import Struct

ENTRY_SIZE = 25
_DIGEST_SIZE = 16
_ROW_SIZE = 24
_ROW = Struct("<16sq")


class OffsetMap:
    """Digest of a key to the last offset of the key. `latest_offset` is the last offset looked at."""

    __slots__ = ("_rows", "_slots", "_tags", "capacity", "latest_offset", "size")

    def __init__(self, memory: int, load_factor: float, expected_keys: int | None = None) -> None:
        """`expected_keys` makes the table smaller than `memory` allows when that many cannot be needed."""
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

    def put(self, key: bytes | memoryview, offset: int) -> bool:
        """Note that `offset` has `key`; False, with nothing noted, when there is no room for a new key."""
        digest = blake2s(key, digest_size=_DIGEST_SIZE).digest()
        slot = self._find(digest)
        if not self._tags[slot]:
            if self.size >= self.capacity:
                return False
            self._tags[slot] = digest[0] | 1
            self.size += 1
        _ROW.pack_into(self._rows, slot * _ROW_SIZE, digest, offset)
        return True

    def get(self, key: bytes | memoryview) -> int:
        """The last offset noted for `key`, -1 when there is none."""
        slot = self._find(blake2s(key, digest_size=_DIGEST_SIZE).digest())
        if not self._tags[slot]:
            return -1
        offset: int = _ROW.unpack_from(self._rows, slot * _ROW_SIZE)[1]
        return offset

    def _find(self, digest: bytes) -> int:
        """The slot that holds `digest`, or the free one where it belongs; `capacity` keeps one free."""
        tags = self._tags
        place = hash(digest)
        slots = self._slots
        slot = place % slots
        tag = digest[0] | 1
        step = 0
        while found := tags[slot]:
            if found == tag:
                position = slot * _ROW_SIZE
                if self._rows[position : position + _DIGEST_SIZE] == digest:
                    break
            step = step or 1 + (place >> 7) % (slots - 1)
            slot = (slot + step) % slots
        return slot


def _prime_at_most(number: int) -> int:
    """The largest prime that is not above `number`, at least 3 so that a probe step exists."""
    candidate = max(3, number)
    if candidate % 2 == 0:
        candidate -= 1
    while any(candidate % divisor == 0 for divisor in range(3, isqrt(candidate) + 1, 2)):
        candidate -= 2
    return candidate
