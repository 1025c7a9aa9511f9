"""OTLP metrics as bytes, written field by field: what a client of Kafka pushes."""

from __future__ import annotations

import struct
from collections.abc import Mapping


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
