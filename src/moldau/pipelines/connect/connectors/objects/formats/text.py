"""Text formats: CSV with a header, plain lines, and bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any, Final

from moldau.pipelines.connect.connectors.lake.rows.blocks import Refused
from moldau.pipelines.connect.connectors.lake.rows.values import part_of, text
from moldau.pipelines.connect.connectors.objects.formats.catalog import Format
from moldau.pipelines.connect.connectors.objects.formats.lines import lines_of
from moldau.pipelines.connect.data.errors import ConnectError, DataError
from moldau.pipelines.connect.data.headers import SchemaAndValue
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import OPTIONAL_STRING, STRING, struct
from moldau.pipelines.connect.data.struct import Struct


class _TextBuffer:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._lines: list[bytes] = []

    def add(self, record: SinkRecord) -> None:
        if record.value is None:
            raise DataError("A record without value is no line of text.")
        self._lines.append(text(record.value).encode())

    def settle(self) -> list[Refused]:
        return []

    def content(self) -> bytes:
        return b"".join(line + b"\n" for line in self._lines)


class _BytesBuffer(_TextBuffer):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        separator: str = settings["format.bytearray.separator"]
        self._separator = separator.encode().decode("unicode_escape").encode()

    def add(self, record: SinkRecord) -> None:
        if not isinstance(record.value, bytes):
            raise DataError("ByteArrayFormat needs bytes: use ByteArrayConverter.")
        self._lines.append(record.value)

    def content(self) -> bytes:
        return b"".join(line + self._separator for line in self._lines)


class _CsvBuffer(_TextBuffer):
    """The first record decides the columns of the file."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._columns: list[str] = []
        self._rows: list[list[str]] = []

    def add(self, record: SinkRecord) -> None:
        value = record.value
        if not isinstance(value, (Struct, dict)):
            raise DataError("Only structs and maps become rows of CSV.")
        names = [field.name for field in value.schema.fields] if isinstance(value, Struct) else list(value)
        if self._columns and not set(names) <= set(self._columns):
            raise DataError(f"The record has other fields than the file, whose columns are {self._columns}.")
        self._columns = self._columns or [str(name) for name in names]
        cells = [part_of(value, name) for name in self._columns]
        self._rows.append(["" if cell is None else text(cell) for cell in cells])

    def content(self) -> bytes:
        if not self._rows:
            return b""
        output = io.StringIO(newline="")
        writer = csv.writer(output, lineterminator="\n")
        writer.writerow(self._columns)
        writer.writerows(self._rows)
        return output.getvalue().encode()


def _read_text(file: Any, skip: int, settings: Mapping[str, Any]) -> Iterator[SchemaAndValue]:
    for number, line in enumerate(lines_of(file)):
        if number >= skip:
            yield SchemaAndValue(STRING, line.decode("utf-8", "replace"))


def _read_bytes(file: Any, skip: int, settings: Mapping[str, Any]) -> Iterator[SchemaAndValue]:
    for number, line in enumerate(lines_of(file)):
        if number >= skip:
            yield SchemaAndValue(None, line)


def _read_csv(file: Any, skip: int, settings: Mapping[str, Any]) -> Iterator[SchemaAndValue]:
    delimiter: str = settings["csv.delimiter"]
    rows = csv.reader(io.TextIOWrapper(file, "utf-8-sig", newline=""), delimiter=delimiter)
    try:
        header = next(rows, None) if settings["csv.first.row.as.header"] else None
        schema = None
        for number, row in enumerate(rows):
            if schema is None:
                header = header or [f"column{index + 1:02}" for index in range(len(row))]
                schema = struct(dict.fromkeys(header, OPTIONAL_STRING))
            if number >= skip:
                cells = [*row[: len(header or ())], *[None] * (len(header or ()) - len(row))]
                yield SchemaAndValue(schema, Struct.of(schema, cells))
    except csv.Error as error:
        raise ConnectError(f"The file is not valid CSV: {error}") from error


FORMATS: Final = {
    "text": Format(".txt", _TextBuffer, _read_text),
    "bytearray": Format(".bin", _BytesBuffer, _read_bytes),
    "csv": Format(".csv", _CsvBuffer, _read_csv, has_schema=True),
}
