"""The wire format of Protocol Buffers, as far as reading needs it. All sizes are checked."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
FIXED32: Final = 5
_MAX_VARINT_BYTES: Final = 10
_FIXED: Final = {FIXED64: 8, FIXED32: 4}


class MalformedMessage(Exception):
    """The bytes are not a message of the expected form."""


def fields(data: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    """Iterate over a message: field number, wire type, and a number or the bytes of the value."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        wire_type = tag & 7
        if wire_type == VARINT:
            value, position = _varint(data, position)
            yield tag >> 3, wire_type, value
            continue
        if wire_type == LENGTH:
            size, position = _varint(data, position)
        elif wire_type in _FIXED:
            size = _FIXED[wire_type]
        else:
            raise MalformedMessage(f"wire type {wire_type} is unknown")
        if size > end - position:
            raise MalformedMessage("a field extends past the end of its message")
        yield tag >> 3, wire_type, data[position : position + size]
        position += size


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    result = shift = 0
    for count in range(_MAX_VARINT_BYTES):
        if position + count >= len(data):
            break
        byte = data[position + count]
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position + count + 1
        shift += 7
    raise MalformedMessage("a number is cut off or too long")


def nested(number: int, content: bytes | memoryview) -> bytes:
    """Return a nested message, or a string, as a field."""
    return b"".join((_encoded(number << 3 | LENGTH), _encoded(len(content)), content))


def _encoded(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def message(value: int | memoryview) -> memoryview:
    """Return the bytes of a nested message or string."""
    if isinstance(value, int):
        raise MalformedMessage("a number where a message is expected")
    return value


def text(value: int | memoryview) -> str:
    try:
        return str(message(value), "utf-8")
    except UnicodeDecodeError:
        raise MalformedMessage("a string is not UTF-8") from None


def double(value: int | memoryview) -> float:
    return float(_unpacked("<d", value))


def sfixed64(value: int | memoryview) -> int:
    return int(_unpacked("<q", value))


def int64(value: int | memoryview) -> int:
    """Return a varint as a signed number."""
    if not isinstance(value, int):
        raise MalformedMessage("bytes where a number is expected")
    return value - (1 << 64) if value >= 1 << 63 else value


def _unpacked(form: str, value: int | memoryview) -> float | int:
    data = message(value)
    if len(data) != struct.calcsize(form):
        raise MalformedMessage("a number has another size")
    number: float | int = struct.unpack(form, data)[0]
    return number
