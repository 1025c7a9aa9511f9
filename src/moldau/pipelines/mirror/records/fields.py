"""Fields of MirrorMaker 2's records: big-endian numbers, and strings with a length of two bytes."""

from __future__ import annotations

import struct

_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")


class MalformedRecord(ValueError):
    """The bytes are not a record of the expected format."""


def string(text: str) -> bytes:
    encoded = text.encode()
    return _INT16.pack(len(encoded)) + encoded


def int16(value: int) -> bytes:
    return _INT16.pack(value)


def int32(value: int) -> bytes:
    return _INT32.pack(value)


def int64(value: int) -> bytes:
    return _INT64.pack(value)


class FieldReader:
    """Reads fields one after the other; bytes after the last one are ignored, as in Kafka."""

    def __init__(self, data: bytes | None) -> None:
        if data is None:
            raise MalformedRecord("key or value is missing")
        self._data = data
        self._position = 0

    def string(self) -> str:
        length = self.int16()
        try:
            return self._take(length).decode()
        except UnicodeDecodeError as error:
            raise MalformedRecord(f"invalid UTF-8: {error}") from error

    def int16(self) -> int:
        return int.from_bytes(self._take(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self._take(8), "big", signed=True)

    def _take(self, size: int) -> bytes:
        taken = self._data[self._position : self._position + size] if size >= 0 else b""
        if size < 0 or len(taken) < size:
            raise MalformedRecord(f"{len(self._data)} bytes are too few")
        self._position += size
        return taken
