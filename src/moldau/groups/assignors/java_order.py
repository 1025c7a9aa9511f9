"""The iteration order of Java's hash tables.

Kafka's assignors iterate over such tables, so the order decides which member gets which partition. The same
order here keeps the assignment of a group that moves between the two brokers. Elements are ordered by bucket,
and within a bucket by insertion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from moldau.base.ids import TopicId
from moldau.base.java_hash import string_hash

T = TypeVar("T")

_MIN_TABLE_SIZE = 16


def in_hash_order(elements: Collection[T], hash_of: Callable[[T], int], copied: bool = False) -> list[T]:
    """Order elements as a hash table filled in the given order, one by one or as a copy (`copied`)."""
    return _by_bucket(elements, hash_of, _table_size(len(elements), copied))


def presized_in_hash_order(elements: Collection[T], hash_of: Callable[[T], int], expected: int) -> list[T]:
    """Order elements as a table presized for `expected` elements, which may have grown."""
    size = 1
    while size < (expected + 1) * 4 // 3 + 1 or len(elements) * 4 > size * 3:
        size *= 2
    return _by_bucket(elements, hash_of, size)


def _by_bucket(elements: Collection[T], hash_of: Callable[[T], int], size: int) -> list[T]:
    def bucket(element: T) -> int:
        value = hash_of(element)
        return (value ^ (value & 0xFFFF_FFFF) >> 16) & (size - 1)

    return sorted(elements, key=bucket)


def strings_in_hash_order(strings: Collection[str]) -> list[str]:
    return in_hash_order(strings, string_hash)


def topics_in_hash_order(topic_ids: Collection[TopicId], copied: bool = False) -> list[TopicId]:
    return in_hash_order(topic_ids, uuid_hash, copied)


def partitions_in_hash_order(partitions: Iterable[int]) -> list[int]:
    """Order partitions; a number is its own hash, so small sets are in ascending order."""
    return in_hash_order(list(partitions), lambda partition: partition, copied=True)


def topic_id_order(topic_id: TopicId) -> tuple[int, int]:
    """Return the sort key of Kafka's topic ids: two signed numbers."""
    return (
        int.from_bytes(topic_id[:8], "big", signed=True),
        int.from_bytes(topic_id[8:], "big", signed=True),
    )


def string_order(text: str) -> bytes:
    """Return the sort key of Java's strings: their UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def _table_size(elements: int, copied: bool) -> int:
    """Return the size of a table, which doubles at a load of 3/4; a copy has room for one more element."""
    size = _MIN_TABLE_SIZE
    while elements * 4 > size * 3 or (copied and elements * 4 // 3 + 1 > size):
        size *= 2
    return size


def uuid_hash(topic_id: TopicId) -> int:
    folded = int.from_bytes(topic_id[:8], "big") ^ int.from_bytes(topic_id[8:], "big")
    return (folded >> 32) ^ (folded & 0xFFFF_FFFF)
