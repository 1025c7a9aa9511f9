"""The hash of a group's subscribed topics: if it changes, the group needs a new assignment.

It covers every existing subscribed topic: its id, name, number of partitions and the racks of their replicas.
It is stored with the group epoch and equals the hash that Kafka stores, so that a log directory moved between
the two does not rebalance every group.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from moldau.groups.assignors.java_order import string_order
from moldau.metadata.image import MetadataImage, TopicImage

_MAGIC = b"\0"
_LONG = struct.Struct("<q")
_INT = struct.Struct("<i")


class SubscriptionHashes:
    """Computes hashes and caches them by topic until the topic changes."""

    def __init__(self) -> None:
        self._topics: dict[str, tuple[TopicImage, int]] = {}

    def of_topics(self, names: Iterable[str], image: MetadataImage) -> int:
        """Return the hash of a subscription to these topics; 0 if none of them exists."""
        found = {
            name: self._of_topic(topic, image)
            for name in names
            if (topic := image.topics.by_name.get(name)) is not None
        }
        if not found:
            return 0
        import xxhash

        hashed = xxhash.xxh3_64()
        for name in sorted(found, key=string_order):
            hashed.update(_LONG.pack(found[name]))
        return _signed(hashed.intdigest())

    def forget(self, name: str) -> None:
        self._topics.pop(name, None)

    def _of_topic(self, topic: TopicImage, image: MetadataImage) -> int:
        known = self._topics.get(topic.name)
        if known is not None and known[0] is topic:
            return known[1]
        value = topic_hash(topic, image)
        self._topics[topic.name] = (topic, value)
        return value


def topic_hash(topic: TopicImage, image: MetadataImage) -> int:
    import xxhash

    most, least = struct.unpack(">qq", topic.id)
    parts = [_MAGIC, _LONG.pack(most), _LONG.pack(least), _string(topic.name)]
    parts.append(_INT.pack(len(topic.partitions)))
    racks = {broker.id: broker.rack for broker in image.cluster.brokers.values() if broker.rack is not None}
    for index in range(len(topic.partitions)):
        parts.append(_INT.pack(index))
        if racks:
            replicas = topic.partitions[index].replicas
            found = sorted((racks[each] for each in replicas if each in racks), key=string_order)
            parts.extend(_INT.pack(len(rack.encode("utf-16-le")) // 2) + _string(rack) for rack in found)
    return _signed(xxhash.xxh3_64_intdigest(b"".join(parts)))


def _string(text: str) -> bytes:
    """Encode a string as hash4j does: UTF-16 units, then their number."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _INT.pack(len(units) // 2)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
