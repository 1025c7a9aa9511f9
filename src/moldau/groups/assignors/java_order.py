"""The order in which Java's hash tables give their elements back.

Kafka's assignors walk over such tables, so who gets which partition follows from it. We walk in the same
order, and a group that changes hands between the two brokers keeps its assignment. Elements come by bucket,
and within one bucket in the order in which they were put there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from moldau.base.ids import TopicId
from moldau.base.java_hash import string_hash

T = TypeVar("T")

_SMALLEST_TABLE = 16


def in_hash_order(elements: Collection[T], hash_of: Callable[[T], int], copied: bool = False) -> list[T]:
    """The elements of a hash table that was filled in the given order, one by one or `copied` at once."""
    return _by_bucket(elements, hash_of, _table_size(len(elements), copied))


def presized_in_hash_order(elements: Collection[T], hash_of: Callable[[T], int], expected: int) -> list[T]:
    """The same for a table that was made for a number of elements, and may have got more."""
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
    """A number is its own hash, so small sets come in ascending order and others nearly so."""
    return in_hash_order(list(partitions), lambda partition: partition, copied=True)


def topic_id_order(topic_id: TopicId) -> tuple[int, int]:
    """The key by which Kafka sorts topic ids: two signed numbers."""
    return (
        int.from_bytes(topic_id[:8], "big", signed=True),
        int.from_bytes(topic_id[8:], "big", signed=True),
    )


def string_order(text: str) -> bytes:
    """The key by which Java sorts strings: by UTF-16 units, which for most text is the usual order."""
    return text.encode("utf-16-be", "surrogatepass")


def _table_size(elements: int, copied: bool) -> int:
    """A table doubles when it is more than three quarters full; a copy is made with room for one more."""
    size = _SMALLEST_TABLE
    while elements * 4 > size * 3 or (copied and elements * 4 // 3 + 1 > size):
        size *= 2
    return size


def uuid_hash(topic_id: TopicId) -> int:
    folded = int.from_bytes(topic_id[:8], "big") ^ int.from_bytes(topic_id[8:], "big")
    return (folded >> 32) ^ (folded & 0xFFFF_FFFF)
