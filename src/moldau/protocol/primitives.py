"""Runtime functions of generated codecs: varints of several bytes, packers for arrays of numbers.

Generated code reads and writes the common case inline (a length below 128 is one byte) and calls these
functions for the rest. Packers for short arrays are cached, so that a replica list costs one dictionary
look-up and one call.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NoReturn

from moldau.protocol.errors import DecodeError, EncodeError

#: Kafka's limit of a string in bytes, also where the encoding would allow a longer one.
MAX_STRING = 0x7FFF
#: Bytes and records of at least this length become separate parts instead of being copied.
LARGE = 4096
_KEPT_LENGTHS = 256
#: A records field of one of these types consists of several consecutive buffers.
several = (list, tuple)


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint: seven bits per byte, lowest first."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_uvarint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    value = data[position]
    if value < 128:
        return value, position + 1
    return long_uvarint(data, position + 1, value)


def long_uvarint(data: bytes | memoryview, position: int, first: int) -> tuple[int, int]:
    """Read the rest of a varint of at most five bytes, after its first byte."""
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise DecodeError("a varint has more than five bytes")


def skip_tags(data: bytes | memoryview, position: int, count: int) -> int:
    """Skip a tagged section without known tags; `count` is its first byte."""
    if count > 127:
        count, position = long_uvarint(data, position, count)
    for _ in range(count):
        _, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
        if position > len(data):
            length_error("an unknown tag", size)
    return position


def long_string_length(data: bytes | memoryview, position: int, first: int) -> tuple[int, int]:
    value, position = long_uvarint(data, position, first)
    if value > MAX_STRING + 1:
        raise DecodeError(f"a string of {value - 1} bytes exceeds the maximum of {MAX_STRING}")
    return value, position


def string_uvarint(value: int) -> bytes:
    if value > MAX_STRING + 1:
        raise EncodeError(f"a string of {value - 1} bytes exceeds the maximum of {MAX_STRING}")
    return uvarint(value)


def null_error(field: str) -> NoReturn:
    raise DecodeError(f"{field} may not be null")


def length_error(field: str, length: int) -> NoReturn:
    raise DecodeError(f"{field}: length {length} extends past the end of the data")


def tag_error(field: str) -> NoReturn:
    raise DecodeError(f"{field}: a tagged field does not have its announced size")


def absent_error(field: str, version: int) -> NoReturn:
    raise EncodeError(f"version {version} has no {field}, which must then have its default value")


class Unpackers(dict[int, Callable[[Any, int], tuple[Any, ...]]]):
    """Maps n to a function that unpacks n numbers of one format."""

    def __init__(self, format: str) -> None:
        self.format = format

    def __missing__(self, length: int) -> Callable[[Any, int], tuple[Any, ...]]:
        unpack = struct.Struct(f">{length}{self.format}").unpack_from
        if length < _KEPT_LENGTHS:
            self[length] = unpack
        return unpack


class Packers(dict[int, Callable[..., bytes]]):
    """Maps n to a function that packs a length prefix and n numbers of one format."""

    def __init__(self, format: str, *, compact: bool) -> None:
        self.format = format
        self.compact = compact

    def __missing__(self, length: int) -> Callable[..., bytes]:
        if not self.compact:
            pack = struct.Struct(f">i{length}{self.format}").pack
        elif length < 127:
            pack = struct.Struct(f">B{length}{self.format}").pack
        else:
            return self._long
        if length < _KEPT_LENGTHS:
            self[length] = pack
        return pack

    def _long(self, prefix: int, *numbers: Any) -> bytes:
        return uvarint(prefix) + struct.pack(f">{len(numbers)}{self.format}", *numbers)


_UNPACKERS: dict[str, Unpackers] = {}
_PACKERS: dict[tuple[str, bool], Packers] = {}


def unpackers(format: str) -> Unpackers:
    """The unpackers of a format, shared by all decoders."""
    return _UNPACKERS.setdefault(format, Unpackers(format))


def packers(format: str, compact: bool) -> Packers:
    """The packers of a format, shared by all encoders."""
    return _PACKERS.setdefault((format, compact), Packers(format, compact=compact))


def uuid_packer(field: str, compact: bool) -> Callable[[list[bytes]], bytes]:
    """Pack a list of ids after its length."""

    def pack(ids: list[bytes]) -> bytes:
        joined = b"".join(ids)
        if len(joined) != 16 * len(ids):
            raise EncodeError(f"{field}: an id has 16 bytes")
        prefix = uvarint(len(ids) + 1) if compact else struct.pack(">i", len(ids))
        return prefix + joined

    return pack
