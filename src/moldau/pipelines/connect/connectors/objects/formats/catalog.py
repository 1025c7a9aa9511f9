"""The formats by their names, which are those of Confluent's classes or short ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol

from moldau.pipelines.connect.connectors.lake.rows.blocks import Refused
from moldau.pipelines.connect.data.errors import ConfigError, DataError
from moldau.pipelines.connect.data.headers import SchemaAndValue
from moldau.pipelines.connect.data.records import SinkRecord

_FORMATS: Final = "moldau.pipelines.connect.connectors.objects.formats"
#: Module of each format, and whether files may have several schemas.
_KNOWN: Final[Mapping[str, str]] = {
    "json": "json",
    "avro": "avro",
    "parquet": "parquet",
    "csv": "text",
    "text": "text",
    "bytearray": "text",
}
NAMES: Final = tuple(_KNOWN)


class FileBuffer(Protocol):
    """The records of one file that is not written yet."""

    def add(self, record: SinkRecord) -> None:
        """Take a record over; `DataError` if it does not fit."""
        ...

    def settle(self) -> list[Refused]:
        """Return records that were taken but do not fit after all, and forget them."""
        ...

    def content(self) -> bytes:
        """Return the bytes of the file; empty if no record remains."""
        ...


class Format(NamedTuple):
    """How files are named, written and read. A file has one schema if `has_schema`."""

    extension: str
    buffer: Callable[[Mapping[str, Any]], FileBuffer]
    #: Returns the records of an open file after the first ones, by settings; an error stands for a record
    #: that cannot be read.
    read: Callable[[Any, int, Mapping[str, Any]], Iterator[SchemaAndValue | DataError]]
    has_schema: bool = False


def format_of(name: str) -> Format:
    """Return a format by its name: `io.confluent.connect.s3.format.json.JsonFormat`, `JsonFormat` or json."""
    simple = name.rpartition(".")[2].removesuffix("Format").lower()
    if simple not in _KNOWN:
        raise ConfigError(f"Unknown format.class {name}. Valid are: {', '.join(_KNOWN)}")
    found: Format = import_module(f"{_FORMATS}.{_KNOWN[simple]}").FORMATS[simple]
    return found
