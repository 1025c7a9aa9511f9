"""The iteration order of Java's hash sets and maps of strings and integers.

Confluent's registry reports the findings about properties, messages and enums in this order, and a verbose
answer lists them so.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import TypeVar

#: A member of a set or a key of a map.
K = TypeVar("K", bound=str | int)
_CACHED_CHARACTERS = 64


@lru_cache(maxsize=4096)
def _keyword_hash(value: str) -> int:
    return _hash(value)


def java_hash(value: str | int) -> int:
    """Return `String.hashCode` or `Integer.hashCode` as an unsigned 32-bit number."""
    if isinstance(value, int):
        return value & 0xFFFFFFFF
    # Only short texts are cached, so that the cache is bounded.
    return _keyword_hash(value) if len(value) <= _CACHED_CHARACTERS else _hash(value)


def _hash(value: str) -> int:
    if value.isascii():
        units: Collection[int] = value.encode()
    else:
        encoded = value.encode("utf-16-be", "surrogatepass")
        units = [encoded[i] << 8 | encoded[i + 1] for i in range(0, len(encoded), 2)]
    result = 0
    for unit in units:
        result = (result * 31 + unit) & 0xFFFFFFFF
    return result


def in_set(first: Collection[K], second: Collection[K] = ()) -> list[K]:
    """Return the order of `new HashSet<>(first)` with `second` added."""
    members = dict.fromkeys((*in_map(first), *second))
    buckets = max(_table(max(int(len(first) / 0.75) + 1, 16)), _table_for(len(members)))
    return _ordered(members, buckets)


def in_map(keys: Collection[K]) -> list[K]:
    """Return the order of the keys of a copied `HashMap`."""
    return _ordered(keys, _table(int(len(keys) / 0.75 + 1)))


def in_grown_map(keys: Collection[K]) -> list[K]:
    """Return the order of the keys of a `HashMap` to which they were added one by one."""
    return _ordered(keys, _table_for(len(keys)))


def _ordered(members: Collection[K], buckets: int) -> list[K]:
    if len(members) < 2:
        return [*members]

    def bucket(member: K) -> int:
        code = java_hash(member)
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(members, key=bucket)


def _table(capacity: int) -> int:
    """The smallest power of two that is not below the capacity."""
    return 1 << max(capacity - 1, 0).bit_length()


def _table_for(size: int) -> int:
    """The table that a set grows to."""
    buckets = 16
    while size > buckets * 0.75:
        buckets *= 2
    return buckets
