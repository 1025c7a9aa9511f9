"""JSON: one value per line, written as JsonConverter writes it without envelope."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from typing import Any, Final

from moldau.pipelines.connect.connectors.lake.rows.blocks import Refused
from moldau.pipelines.connect.connectors.objects.formats.catalog import Format
from moldau.pipelines.connect.connectors.objects.formats.lines import lines_of
from moldau.pipelines.connect.converters.json.converter import JsonConverter
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.headers import SchemaAndValue
from moldau.pipelines.connect.data.records import SinkRecord


def _converter() -> JsonConverter:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"})
    return converter


class _JsonBuffer:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._converter = _converter()
        self._lines: list[bytes] = []

    def add(self, record: SinkRecord) -> None:
        line = self._converter.from_connect(record.topic, (), record.value_schema, record.value)
        self._lines.append(b"null" if line is None else line)

    def settle(self) -> list[Refused]:
        return []

    def content(self) -> bytes:
        return b"".join(line + b"\n" for line in self._lines)


def _read(file: Any, skip: int, settings: Mapping[str, Any]) -> Iterator[SchemaAndValue | DataError]:
    converter = _converter()
    for number, line in enumerate(lines_of(file)):
        if number < skip:
            continue
        try:
            yield converter.to_connect("", (), line) if line.strip() else SchemaAndValue(None, None)
        except DataError as error:
            yield error


def compressed(data: bytes, kind: str) -> bytes:
    """Compress like `s3.compression.type`; gzip without a time, so that equal files have equal bytes."""
    return gzip.compress(data, mtime=0) if kind == "gzip" else data


FORMATS: Final = {"json": Format(".json", _JsonBuffer, _read)}
