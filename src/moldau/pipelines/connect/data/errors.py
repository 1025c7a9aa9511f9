"""The errors of Kafka Connect's API.

Each class names its counterpart in Java, because the headers of a dead-letter topic and the traces of a
failed task carry that name, and tools that read them expect Kafka's.
"""

from __future__ import annotations

from typing import ClassVar

_ERRORS = "org.apache.kafka.connect.errors."


class ConnectError(Exception):
    """The base of all errors that connectors, converters and transformations report."""

    java_class: ClassVar[str] = f"{_ERRORS}ConnectException"


class DataError(ConnectError):
    """A value, or a schema, that does not meet the requirements of the operation."""

    java_class: ClassVar[str] = f"{_ERRORS}DataException"


class SchemaBuilderError(DataError):
    """A schema that contradicts itself, for example by a default value of another type."""

    java_class: ClassVar[str] = f"{_ERRORS}SchemaBuilderException"


class UnknownFieldError(ConnectError):
    """A transformation names a field that the record's schema does not have."""

    java_class: ClassVar[str] = "java.lang.IllegalArgumentException"


class RetriableError(ConnectError):
    """A failure that may pass: the operation can be repeated as it is."""

    java_class: ClassVar[str] = f"{_ERRORS}RetriableException"


class SerializationError(ConnectError):
    """Bytes that cannot be read, or a value that cannot be written, in the converter's format."""

    java_class: ClassVar[str] = "org.apache.kafka.common.errors.SerializationException"


class ConfigError(ConnectError):
    """A configuration that is missing, of the wrong type, or not valid."""

    java_class: ClassVar[str] = "org.apache.kafka.common.config.ConfigException"

    @classmethod
    def invalid(cls, name: str, value: object, reason: str = "") -> ConfigError:
        """Return the error of one setting, in Kafka's words."""
        text = "null" if value is None else f"[{', '.join(value)}]" if isinstance(value, list) else str(value)
        return cls(f"Invalid value {text} for configuration {name}" + (f": {reason}" if reason else ""))
