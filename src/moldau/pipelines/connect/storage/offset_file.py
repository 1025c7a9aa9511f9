"""The offsets file of a standalone worker (`offset.storage.file.filename`), in Kafka Connect's format.

Kafka Connect writes a `HashMap<byte[], byte[]>` with Java's serialization. This module reads and writes
exactly that one object graph, so that a standalone worker of either kind continues where the other has
stopped. Any other content is refused, never interpreted.

The file is replaced as a whole: written beside it, synced and renamed.
"""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.pipelines.connect.storage.log import Replay
from moldau.pipelines.connect.storage.types import Record

#: Stream header; new object of java.util.HashMap (writes its own data) with loadFactor and threshold.
_HEADER: Final = (
    b"\xac\xed\x00\x05sr\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1\x03\x00\x02"
    b"F\x00\nloadFactorI\x00\tthresholdxp"
)
#: A new array with the class description of byte[], and a further one that refers to it.
_FIRST_ARRAY: Final = b"ur\x00\x02[B\xac\xf3\x17\xf8\x06\x08T\xe0\x02\x00\x00xp"
_ARRAY: Final = b"uq\x00~\x00\x02"
_NULL: Final = b"p"
_BLOCK: Final = b"w\x08"
_END: Final = b"x"
_LOAD_FACTOR: Final = 0.75
_MAX_ENTRIES: Final = 1_000_000


class OffsetFile:
    """A log whose records are the entries of the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[bytes, bytes | None] = {}
        self._offsets = itertools.count()
        self._replay: Replay | None = None

    async def start(self, replay: Replay) -> None:
        self._replay = replay
        self._entries = read_entries(self._path)
        for key, value in self._entries.items():
            replay(key, value, next(self._offsets))

    async def append(self, records: Sequence[Record]) -> None:
        self.append_soon(records)

    def append_soon(self, records: Sequence[Record]) -> None:
        if self._replay is None:
            raise RuntimeError("The log is not started.")
        for key, value in records:
            self._entries[key] = value
        write_entries(self._path, self._entries)
        for key, value in records:
            self._replay(key, value, next(self._offsets))

    async def read_to_end(self) -> None:
        return

    async def close(self) -> None:
        return


def read_entries(path: Path) -> dict[bytes, bytes | None]:
    """Return the entries of a file; none if it is missing or empty, `KafkaError` if it has another format."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    if not data:
        return {}
    try:
        return _decode(data)
    except (ValueError, struct.error, IndexError):
        raise _unreadable(path, "it is not an offsets file of Kafka Connect") from None


def write_entries(path: Path, entries: dict[bytes, bytes | None]) -> None:
    """Replace the file; `KafkaError` if it cannot be written."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(_encode(entries))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        message = f"The offsets file {path} cannot be written: {error.strerror or error}."
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from None


def _unreadable(path: Path, reason: str) -> KafkaError:
    message = (
        f"The offsets file {path} cannot be read: {reason}. Choose another with offset.storage.file.filename."
    )
    return KafkaError(ErrorCode.INVALID_CONFIG, message)


def _encode(entries: dict[bytes, bytes | None]) -> bytes:
    capacity = 16
    while len(entries) > capacity * _LOAD_FACTOR:
        capacity *= 2
    threshold = int(capacity * _LOAD_FACTOR)
    parts = [_HEADER, struct.pack(">fi", _LOAD_FACTOR, threshold), _BLOCK]
    parts.append(struct.pack(">ii", capacity, len(entries)))
    arrays = 0
    for each in itertools.chain.from_iterable(entries.items()):
        if each is None:
            parts.append(_NULL)
            continue
        parts += [_ARRAY if arrays else _FIRST_ARRAY, struct.pack(">i", len(each)), each]
        arrays += 1
    return b"".join([*parts, _END])


def _decode(data: bytes) -> dict[bytes, bytes | None]:
    if not data.startswith(_HEADER):
        raise ValueError("not a HashMap")
    at = len(_HEADER) + 8
    if data[at : at + 2] != _BLOCK:
        raise ValueError("not a HashMap")
    _, size = struct.unpack_from(">ii", data, at + 2)
    if not 0 <= size <= _MAX_ENTRIES:
        raise ValueError("wrong size")
    at += 10
    found: list[bytes | None] = []
    for _ in range(2 * size):
        array, at = _array(data, at)
        found.append(array)
    pairs = zip(found[::2], found[1::2], strict=True)
    return {key: value for key, value in pairs if key is not None}


def _array(data: bytes, at: int) -> tuple[bytes | None, int]:
    if data.startswith(_NULL, at):
        return None, at + 1
    if data.startswith(_FIRST_ARRAY, at):
        at += len(_FIRST_ARRAY)
    elif data[at : at + 4] == _ARRAY[:4]:
        # A reference to the class description; its number depends on the objects before it.
        at += len(_ARRAY)
    else:
        raise ValueError("not a byte array")
    (length,) = struct.unpack_from(">i", data, at)
    start = at + 4
    if length < 0 or start + length > len(data):
        raise ValueError("wrong length")
    return data[start : start + length], start + length
