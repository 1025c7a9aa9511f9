"""Which partition of `__remote_log_metadata` has the records of a user partition, as in Apache Kafka."""

from __future__ import annotations

from moldau.tiered.state.segments import PartitionId

_MASK = 0xFFFF_FFFF


def metadata_partition(partition_id: PartitionId, partitions: int) -> int:
    """Return the partition of the metadata topic for a user partition."""
    most = int.from_bytes(partition_id.topic_id[:8], "big")
    least = int.from_bytes(partition_id.topic_id[8:], "big")
    value = 1
    for part in (_long_hash(least), _long_hash(most), partition_id.partition):
        value = (31 * value + part) & _MASK
    return (_murmur2(value.to_bytes(4, "big")) & 0x7FFF_FFFF) % partitions


def _long_hash(value: int) -> int:
    """Java's `Long.hashCode`."""
    return (value ^ value >> 32) & _MASK


def _murmur2(data: bytes) -> int:
    """Kafka's murmur2 of four bytes."""
    multiplier, h = 0x5BD1_E995, 0x9747_B28C ^ len(data)
    k = int.from_bytes(data, "little") * multiplier & _MASK
    k = (k ^ k >> 24) * multiplier & _MASK
    h = (h * multiplier & _MASK) ^ k
    h = (h ^ h >> 13) * multiplier & _MASK
    return h ^ h >> 15
