"""What the worker asks of a converter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    Importance,
    ValidString,
)
from moldau.pipelines.connect.data.headers import SchemaAndValue
from moldau.pipelines.connect.data.schema import Schema

#: The headers of a record as the topic has them.
RawHeaders = Iterable[tuple[str, bytes | None]]


def converter_config() -> ConfigDef:
    """Return the definition that all converters begin with."""
    return ConfigDef().define(
        "converter.type",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.LOW,
        "What the converter is used for: key, value or header.",
        validator=ValidString(("key", "value", "header")),
    )


class HeaderConverter(ABC):
    """Converts the values of headers."""

    config: ClassVar[ConfigDef]

    @abstractmethod
    def configure(self, config: Mapping[str, Any], is_key: bool = False) -> None:
        """Take over the settings, without prefix. For headers `converter.type` is `header`."""

    @abstractmethod
    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes of a header's value."""

    @abstractmethod
    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        """Return the value of a header's bytes."""

    def close(self) -> None:  # noqa: B027
        """Release what the converter holds; most hold nothing."""


class Converter(HeaderConverter):
    """Converts keys and values; and headers in the same way."""

    @abstractmethod
    def from_connect(
        self, topic: str, headers: RawHeaders, schema: Schema | None, value: Any
    ) -> bytes | None:
        """Return the bytes of a key or value; None for a tombstone."""

    @abstractmethod
    def to_connect(self, topic: str, headers: RawHeaders, data: bytes | None) -> SchemaAndValue:
        """Return the key or value of the bytes."""

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        return self.from_connect(topic, (), schema, value)

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        return self.to_connect(topic, (), data)


def converter_type(config: Mapping[str, Any], is_key: bool) -> dict[str, Any]:
    """Return the settings with the converter's use, which configurations leave to the worker."""
    return {"converter.type": "key" if is_key else "value"} | dict(config)
