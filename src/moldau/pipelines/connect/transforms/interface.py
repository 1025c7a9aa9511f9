"""What the worker asks of a transformation or predicate, and the part of a record it works on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import ConfigDef, ConfigType, Importance
from moldau.pipelines.connect.data.records import ConnectRecord
from moldau.pipelines.connect.data.schema import Schema

#: Schemas that a transformation remembers its result for, as many as in Kafka.
SCHEMAS_PER_TRANSFORMATION = 16


class Transformation(ABC):
    """Changes records one by one."""

    config: ClassVar[ConfigDef]

    @abstractmethod
    def configure(self, config: Mapping[str, Any]) -> None:
        """Take over the settings, without prefix."""

    @abstractmethod
    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the changed record, the same one, or None to drop it."""

    def close(self) -> None:  # noqa: B027
        """Release what the transformation holds; most hold nothing."""


class Predicate(ABC):
    """Decides which records a transformation is applied to."""

    config: ClassVar[ConfigDef]

    @abstractmethod
    def configure(self, config: Mapping[str, Any]) -> None:
        """Take over the settings, without prefix."""

    @abstractmethod
    def test(self, record: ConnectRecord) -> bool: ...

    def close(self) -> None:  # noqa: B027
        """Release what the predicate holds; most hold nothing."""


class Part(Enum):
    """The key or the value of a record; classes with `$Key` and `$Value` exist for both."""

    KEY = "Key"
    VALUE = "Value"

    def schema_of(self, record: ConnectRecord) -> Schema | None:
        return record.key_schema if self is Part.KEY else record.value_schema

    def value_of(self, record: ConnectRecord) -> Any:
        return record.key if self is Part.KEY else record.value

    def replaced(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        if self is Part.KEY:
            return record.replace(key_schema=schema, key=value)
        return record.replace(value_schema=schema, value=value)


def with_null_replacement(definition: ConfigDef) -> ConfigDef:
    """Add the setting of transformations that read fields with a default (KIP-1040)."""
    return definition.define(
        "replace.null.with.default",
        ConfigType.BOOLEAN,
        True,
        Importance.MEDIUM,
        "Use the default value of a field in place of null.",
    )
