"""The offsets of source connectors: how far each partition of a source has been read.

A record's key is `[CONNECTOR, PARTITION]` and its value the offset; both are JSON objects of the connector's
own choice, and a tombstone forgets a partition. Kafka compacts by the bytes of keys, so the order of a
partition's fields must be the same in all writers: it is that of Java's HashMap, which Kafka Connect's
converter iterates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.base.java_hash import string_hash
from moldau.pipelines.connect.storage.types import Record, decode, encode

Partition = Mapping[str, Any]
Offset = Mapping[str, Any]

#: The load factor of a HashMap, as a fraction, and its first size.
_LOAD = (3, 4)
_FIRST_BUCKETS = 16


class OffsetState:
    def __init__(self) -> None:
        self._offsets: dict[bytes, Any] = {}

    def replay(self, key: bytes, value: bytes | None) -> None:
        found = decode(value)
        if found is None:
            self._offsets.pop(key, None)
        else:
            self._offsets[key] = found

    def get(self, connector: str, partition: Partition) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._offsets.get(offset_key(connector, partition))
        return found

    def of(self, connector: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return partitions and offsets of a connector."""
        result = []
        for key, offset in self._offsets.items():
            found = decode(key)
            if isinstance(found, list) and len(found) == 2 and found[0] == connector:
                result.append((found[1], offset))
        return result


def offset_record(connector: str, partition: Partition, offset: Offset | None) -> Record:
    """Return the record of an offset; None forgets the partition."""
    value = None if offset is None else encode(_in_hash_order(offset))
    return offset_key(connector, partition), value


def offset_key(connector: str, partition: Partition) -> bytes:
    return encode([connector, _in_hash_order(partition)])


def _in_hash_order(value: Any) -> Any:
    """Return a copy of which all maps have the order of Java's HashMap."""
    if isinstance(value, Mapping):
        buckets = _FIRST_BUCKETS
        while len(value) * _LOAD[1] > buckets * _LOAD[0]:
            buckets *= 2
        names = sorted(value, key=lambda name: _spread(string_hash(name)) & (buckets - 1))
        return {name: _in_hash_order(value[name]) for name in names}
    if isinstance(value, list | tuple):
        return [_in_hash_order(each) for each in value]
    return value


def _spread(value: int) -> int:
    unsigned = value & 0xFFFF_FFFF
    return unsigned ^ (unsigned >> 16)
