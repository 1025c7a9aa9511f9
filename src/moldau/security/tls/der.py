"""Reads elements of DER (X.690), as far as names and key stores need it."""

from __future__ import annotations

from collections.abc import Iterator

SEQUENCE = 0x30
SET = 0x31
OBJECT_IDENTIFIER = 0x06


class DerError(ValueError):
    """The bytes are not DER."""


def read_element(data: bytes) -> tuple[int, bytes, bytes]:
    """Return tag and content of the first element, and the bytes after it."""
    if len(data) < 2:
        raise DerError("an element ends too early")
    tag, first = data[0], data[1]
    if tag & 0x1F == 0x1F:
        raise DerError("tags of several bytes are not supported")
    start, size = 2, first
    if first & 0x80:
        digits = first & 0x7F
        if not 1 <= digits <= 4:
            raise DerError("an element has no definite length")
        start, size = 2 + digits, int.from_bytes(data[2 : 2 + digits], "big")
    end = start + size
    if end > len(data):
        raise DerError("an element ends too early")
    return tag, data[start:end], data[end:]


def elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Return tag and content of each element of a content."""
    while data:
        tag, content, data = read_element(data)
        yield tag, content


def expect(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return the content of the first element, which must have this tag, and the bytes after it."""
    found, content, rest = read_element(data)
    if found != tag:
        raise DerError(f"an element with the tag {tag:#04x} is expected, found {found:#04x}")
    return content, rest


def object_identifier(content: bytes) -> str:
    """Return an object identifier in dotted form."""
    if not content or content[-1] & 0x80:
        raise DerError("an object identifier ends too early")
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
