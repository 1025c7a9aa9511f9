"""OTLP metrics as bytes, written field by field: what a client of Kafka pushes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence


def varint(value: int) -> bytes:
    encoded = b""
    while value >= 0x80:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def nested(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(name: str, value: str | int) -> bytes:
    content = nested(1, value.encode()) if isinstance(value, str) else varint(3 << 3) + varint(value)
    return nested(1, name.encode()) + nested(2, content)


def point(value: float, attributes: Mapping[str, str | int] | None = None) -> bytes:
    number = varint(6 << 3 | 1) + struct.pack("<q", value) if isinstance(value, int) else b""
    if isinstance(value, float):
        number = varint(4 << 3 | 1) + struct.pack("<d", value)
    time = varint(3 << 3 | 1) + struct.pack("<q", 1)
    return time + number + b"".join(nested(7, attribute(*each)) for each in (attributes or {}).items())


def gauge(name: str, *points: bytes) -> bytes:
    return nested(1, name.encode()) + nested(5, b"".join(nested(1, each) for each in points))


def total(name: str, *points: bytes, delta: bool = True) -> bytes:
    """A monotonic sum."""
    temporality = varint(2 << 3) + varint(1 if delta else 2) + varint(3 << 3) + varint(1)
    return nested(1, name.encode()) + nested(7, b"".join(nested(1, each) for each in points) + temporality)


def payload(*metrics: bytes, resource: Mapping[str, str | int] | None = None) -> bytes:
    attributes = b"".join(nested(1, attribute(*each)) for each in (resource or {}).items())
    scope = b"".join(nested(2, metric) for metric in metrics)
    return nested(1, nested(1, attributes) + nested(2, scope))


def histogram(
    name: str,
    counts: Sequence[int],
    bounds: Sequence[float],
    total: float,
    attributes: Mapping[str, str | int] | None = None,
    *,
    delta: bool = False,
) -> bytes:
    """A histogram with one point, whose repeated fields are packed."""
    body = varint(4 << 3 | 1) + struct.pack("<Q", sum(counts)) + varint(5 << 3 | 1) + struct.pack("<d", total)
    body += nested(6, struct.pack(f"<{len(counts)}Q", *counts))
    body += nested(7, struct.pack(f"<{len(bounds)}d", *bounds))
    body += b"".join(nested(9, attribute(*each)) for each in (attributes or {}).items())
    return nested(1, name.encode()) + nested(9, nested(1, body) + varint(2 << 3) + varint(1 if delta else 2))


def summary(name: str, count: int, total: float) -> bytes:
    body = varint(4 << 3 | 1) + struct.pack("<Q", count) + varint(5 << 3 | 1) + struct.pack("<d", total)
    return nested(1, name.encode()) + nested(11, nested(1, body))
