"""Partitioners, as classes like those of Java's producer.

A partitioner has a method `partition(topic, key, key_bytes, value, value_bytes, partitions)` that returns a
number below `partitions`, or -1 for the default: murmur2 of the key's bytes, as in Java's producer, and for
records without a key one partition per batch (sticky).
"""

from __future__ import annotations

import random
import threading
from typing import Any, Protocol

from moldau.base.errors import ErrorCode, KafkaError

#: Use the default partitioner.
ANY_PARTITION = -1
_M = 0x5BD1_E995
_MASK = 0xFFFF_FFFF


class Partitioner(Protocol):
    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        partitions: int,
    ) -> int: ...


def murmur2(data: bytes) -> int:
    """Return the hash of Java's producer, as a signed 32-bit number."""
    length = len(data)
    h = 0x9747_B28C ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        k = int.from_bytes(data[position : position + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    if length & 3:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    h ^= h >> 15
    return h - 0x1_0000_0000 if h & 0x8000_0000 else h


def partition_for_key(key_bytes: bytes, partitions: int) -> int:
    """Return the partition that Java's producer chooses for this key."""
    return (murmur2(key_bytes) & 0x7FFF_FFFF) % partitions


class DefaultPartitioner:
    """By key as in Java; sticky without a key. librdkafka implements both."""

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        partitions: int,
    ) -> int:
        return ANY_PARTITION if key_bytes is None else partition_for_key(key_bytes, partitions)


class RoundRobinPartitioner:
    """All partitions in turn, independent of the key."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        self._lock = threading.Lock()

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        partitions: int,
    ) -> int:
        with self._lock:
            turn = self._next.get(topic, 0)
            self._next[topic] = turn + 1
        return turn % partitions


class StickyPartitioner:
    """One partition for about one batch, then another random one, independent of the key."""

    def __init__(self, batch_size: int = 16_384, randomness: random.Random | None = None) -> None:
        self._batch_size = batch_size
        self._random = randomness or random.Random()
        self._current: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        partitions: int,
    ) -> int:
        size = len(key_bytes or b"") + len(value_bytes or b"")
        with self._lock:
            chosen, sent = self._current.get(topic, (-1, 0))
            if not 0 <= chosen < partitions or sent >= self._batch_size:
                chosen, sent = self._another(chosen, partitions), 0
            self._current[topic] = (chosen, sent + size)
        return chosen

    def _another(self, current: int, partitions: int) -> int:
        if partitions == 1:
            return 0
        others = [index for index in range(partitions) if index != current]
        return self._random.choice(others)


_BY_NAME = {
    "default": DefaultPartitioner,
    "defaultpartitioner": DefaultPartitioner,
    "murmur2": DefaultPartitioner,
    "roundrobin": RoundRobinPartitioner,
    "roundrobinpartitioner": RoundRobinPartitioner,
    "sticky": StickyPartitioner,
    "uniformstickypartitioner": StickyPartitioner,
}


def choose_partitioner(choice: Any) -> Partitioner | None:
    """Return the partitioner for an object, class or name; None if librdkafka's own does the same."""
    if choice is None:
        return None
    if isinstance(choice, str):
        found = _BY_NAME.get(choice.rpartition(".")[2].lower())
        if found is None:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Unknown partitioner {choice!r}; use an object with a method `partition`, or one of "
                "default, roundrobin, sticky",
            )
        choice = found
    made: Partitioner = choice() if isinstance(choice, type) else choice
    return None if type(made) is DefaultPartitioner else made
