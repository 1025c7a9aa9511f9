"""Headers of a record: ordered, with duplicate keys, each with schema and value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import Schema
from moldau.pipelines.connect.data.struct import Struct, validate_value


class SchemaAndValue(NamedTuple):
    """A value with its schema; without schema for schemaless data."""

    schema: Schema | None
    value: Any


NULL = SchemaAndValue(None, None)


class Header(NamedTuple):
    key: str
    schema: Schema | None
    value: Any


class Headers:
    """The headers of one record. Methods that change them return the headers, for chained calls."""

    __slots__ = ("_headers",)

    def __init__(self, headers: Iterable[Header] = ()) -> None:
        self._headers = list(headers)

    def add(self, key: str, value: Any, schema: Schema | None = None) -> Headers:
        """Append a header after checking that the value fits the schema."""
        if schema is not None:
            if value is None and not schema.optional:
                raise DataError(f"A null value requires an optional schema but was {schema}")
            validate_value(schema, value)
        return self.append(key, schema, value)

    def append(self, key: str, schema: Schema | None, value: Any) -> Headers:
        """Append a header as it is."""
        if schema is None and isinstance(value, Struct):
            schema = value.schema
        self._headers.append(Header(key, schema, value))
        return self

    def last_with_name(self, key: str) -> Header | None:
        return next((header for header in reversed(self._headers) if header.key == key), None)

    def all_with_name(self, key: str) -> list[Header]:
        return [header for header in self._headers if header.key == key]

    def remove(self, *keys: str) -> Headers:
        self._headers = [header for header in self._headers if header.key not in keys]
        return self

    def clear(self) -> Headers:
        self._headers = []
        return self

    def retain_latest(self) -> Headers:
        """Keep the last header of each key, in the order of the kept ones."""
        last = {header.key: index for index, header in enumerate(self._headers)}
        self._headers = [self._headers[index] for index in sorted(last.values())]
        return self

    def duplicate(self) -> Headers:
        return Headers(self._headers)

    def __iter__(self) -> Iterator[Header]:
        return iter(self._headers)

    def __len__(self) -> int:
        return len(self._headers)

    def __eq__(self, other: object) -> bool:
        return self._headers == other._headers if isinstance(other, Headers) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Headers({self._headers})"
