"""Java's `String.hashCode`, from which Kafka derives the coordinator partition of a name."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=16_384)
def string_hash(text: str) -> int:
    """`String.hashCode`: a signed 32-bit number over the UTF-16 units."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) & 0xFFFF_FFFF
    return value - 0x1_0000_0000 if value >= 0x8000_0000 else value


def partition_for_name(name: str, partitions: int) -> int:
    """The coordinator partition of a group or transactional id."""
    value = string_hash(name)
    return 0 if value == -0x8000_0000 else abs(value) % partitions
