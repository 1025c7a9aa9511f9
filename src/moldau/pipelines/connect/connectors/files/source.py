"""FileStreamSource: appends the lines of a file to a topic.

The file is followed like `tail -f`. The offset is the number of bytes after the last whole line, so a
restarted task continues exactly there. Kafka's connector counts characters but skips bytes; ours counts
bytes, which is the same for ASCII. A file that becomes shorter than the offset was replaced: the task fails
rather than to skip or to repeat lines.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, BinaryIO, Final

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    NonEmptyString,
)
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.data.schema import STRING
from moldau.pipelines.connect.sdk import (
    ExactlyOnceSupport,
    Offset,
    Partition,
    SourceConnector,
    SourceContext,
    SourceTask,
)

FILE: Final = "file"
TOPIC: Final = "topic"
BATCH_SIZE: Final = "batch.size"
FILENAME, POSITION = "filename", "position"

_READ_BYTES: Final = 1 << 20
#: A task looks for new lines after this time, doubled while there are none.
_FIRST_WAIT_S, _MAX_WAIT_S = 0.01, 0.2
_MISSING_WAIT_S: Final = 1.0
_MAX_LINE: Final = 64 << 20


class FileStreamSourceConnector(SourceConnector):
    config = (
        ConfigDef()
        .define(FILE, ConfigType.STRING, None, Importance.HIGH, "Path of the file to read.")
        .define(
            TOPIC,
            ConfigType.STRING,
            NO_DEFAULT,
            Importance.HIGH,
            "Topic to write the lines to.",
            validator=NonEmptyString(),
        )
        .define(
            BATCH_SIZE,
            ConfigType.INT,
            2000,
            Importance.LOW,
            "Maximum number of lines that are read at a time.",
        )
    )

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        """Refuse a source without a file: tasks run in processes that have no standard input."""
        values = super().validate(properties)
        if not values[FILE].value:
            values[FILE].errors.append(
                'Missing required configuration "file": tasks run without standard input, name a file.'
            )
        return values

    def task(self) -> SourceTask:
        return FileStreamSourceTask()

    def exactly_once_support(self, properties: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED if properties.get(FILE) else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> bool:
        for partition, offset in offsets:
            if offset is not None:
                _check_offset(partition, offset)
        return True


def _check_offset(partition: Any, offset: Offset) -> None:
    if POSITION not in offset:
        raise ConnectError(f"Offset objects should either be null or contain the key '{POSITION}'")
    position = offset[POSITION]
    if not isinstance(position, int) or isinstance(position, bool):
        raise ConnectError(f"The value for the '{POSITION}' key in the offset is expected to be a Long value")
    if position < 0:
        raise ConnectError(f"The value for the '{POSITION}' key in the offset should be a non-negative value")
    if partition is None:
        raise ConnectError("Partition objects cannot be null")
    if FILENAME not in partition:
        raise ConnectError(f"Partition objects should contain the key '{FILENAME}'")


class FileStreamSourceTask(SourceTask):
    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._position = 0
        self._rest = b""
        self._wait_s = _FIRST_WAIT_S

    def start(self, context: SourceContext) -> None:
        settings = FileStreamSourceConnector.config.parse(context.config)
        self._context = context
        self._path: str = settings[FILE]
        self._topic: str = settings[TOPIC]
        self._batch_size: int = max(1, settings[BATCH_SIZE])
        self._partition = {FILENAME: self._path}

    def poll(self) -> Sequence[SourceRecord]:
        if self._file is None and not self._open():
            self._context.wait(_MISSING_WAIT_S)
            return ()
        records = self._lines()
        if records:
            self._wait_s = _FIRST_WAIT_S
        else:
            self._context.wait(self._wait_s)
            self._wait_s = min(self._wait_s * 2, _MAX_WAIT_S)
        return records

    def stop(self) -> None:
        if self._file is not None:
            self._file.close()

    def _open(self) -> bool:
        try:
            file = open(self._path, "rb")  # noqa: SIM115 - closed by stop
        except FileNotFoundError:
            return False
        except OSError as error:
            raise ConnectError(f"The file {self._path} cannot be read: {error.strerror}") from error
        stored = self._context.offset(self._partition)
        position = (stored or {}).get(POSITION) or 0
        if not isinstance(position, int):
            file.close()
            raise ConnectError("Offset position is the incorrect type")
        self._position = position
        file.seek(position)
        self._file = file
        return True

    def _lines(self) -> list[SourceRecord]:
        """Return the next whole lines, at most `batch.size`; the rest stays for the next poll."""
        if b"\n" not in self._rest and b"\r" not in self._rest[:-1]:
            self._rest += self._read()
        lines, ends, taken = _whole_lines(self._rest, self._batch_size)
        now, begin = int(time.time() * 1000), self._position
        records = [
            SourceRecord(
                topic=self._topic,
                value_schema=STRING,
                value=line.decode("utf-8", "replace"),
                timestamp=now,
                source_partition=self._partition,
                source_offset={POSITION: begin + end},
            )
            for line, end in zip(lines, ends, strict=True)
        ]
        self._position += taken
        self._rest = self._rest[taken:]
        if len(self._rest) > _MAX_LINE:
            raise ConnectError(f"A line of {self._path} is longer than {_MAX_LINE} bytes")
        return records

    def _read(self) -> bytes:
        file = self._file
        if file is None:
            return b""
        if os.fstat(file.fileno()).st_size < self._position + len(self._rest):
            raise ConnectError(
                f"The file {self._path} is shorter than the position {self._position} that was read: it was "
                "replaced or truncated. Stop the connector and reset its offsets to read it again."
            )
        return file.read(_READ_BYTES)


def _whole_lines(data: bytes, count: int) -> tuple[list[bytes], list[int], int]:
    """Return up to `count` lines, where each ends with its line ending, and how much of `data` that is."""
    if b"\r" not in data:
        lines = data.split(b"\n", count)
        lines.pop()
        ends = list(accumulate(len(line) + 1 for line in lines))
        return lines, ends, ends[-1] if ends else 0
    lines, ends, start = [], [], 0
    while len(lines) < count and (found := _line_end(data, start)) is not None:
        lines.append(data[start : found[0]])
        start = found[1]
        ends.append(start)
    return lines, ends, start


def _line_end(data: bytes, start: int) -> tuple[int, int] | None:
    r"""Return the end of the line and the start of the next; lines end with \n, \r\n or \r."""
    newline = data.find(b"\n", start)
    carriage = data.find(b"\r", start, newline if newline >= 0 else len(data))
    if carriage >= 0:
        if carriage + 1 == len(data):
            # The next byte may be the \n of this line.
            return None
        return carriage, carriage + (2 if data[carriage + 1] == 0x0A else 1)
    return None if newline < 0 else (newline, newline + 1)
