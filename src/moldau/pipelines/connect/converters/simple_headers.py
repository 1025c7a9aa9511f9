"""Header values as text, with the type that the text shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import ConfigDef
from moldau.pipelines.connect.converters.interface import HeaderConverter
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.headers import NULL, SchemaAndValue
from moldau.pipelines.connect.data.schema import BYTES, Schema
from moldau.pipelines.connect.data.values.parser import parse_string
from moldau.pipelines.connect.data.values.text import convert_to_string


class SimpleHeaderConverter(HeaderConverter):
    """Recognises numbers, booleans, dates, lists and maps in the text. The default of header converters."""

    config: ClassVar[ConfigDef] = ConfigDef()

    def configure(self, config: Mapping[str, Any], is_key: bool = False) -> None:
        """Nothing to configure."""

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        text = convert_to_string(schema, value)
        return None if text is None else text.encode("utf-8", "replace")

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return NULL
        try:
            return parse_string(data.decode("utf-8", "replace"))
        except (DataError, RecursionError):
            return SchemaAndValue(BYTES, data)
