"""The definition of a config: its name, type, default, valid values, and how it may change.

A `ConfigKey` parses the text of a properties file or of an AlterConfigs request (`parse`) and formats a value
as DescribeConfigs does (`format_value`). Both follow Kafka exactly, including its error messages: numbers may
have a sign and surrounding blanks, a list is split at commas, doubles are printed as in Java. An invalid
value raises `ConfigError` with a message that names the config, the value and the valid values.

The tables of configs are tuples of `ConfigKey` in `broker.definitions`, `topic`, `group` and
`client_metrics`; nothing is registered at import time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import Final, NamedTuple, Protocol

from moldau.base.errors import ErrorCode, KafkaError

ConfigValue = bool | int | float | str | tuple[str, ...] | None


class ConfigError(KafkaError):
    """An invalid config or value; `code` is the error code for the client."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INVALID_CONFIG) -> None:
        super().__init__(code, message)
        self.sentence = message


def invalid_value(name: str, value: object, reason: str) -> ConfigError:
    """Return the error with Kafka's own message."""
    return ConfigError(f"Invalid value {shown(value)} for configuration {name}: {reason}")


def shown(value: object) -> str:
    """Format a value for a message."""
    if value is None:
        return "null"
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    if isinstance(value, float):
        return format_double(value)
    return str(value)


class ConfigType(IntEnum):
    """The type of a config; the numbers are those of DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN: Final = ConfigType.BOOLEAN
STRING: Final = ConfigType.STRING
INT: Final = ConfigType.INT
SHORT: Final = ConfigType.SHORT
LONG: Final = ConfigType.LONG
DOUBLE: Final = ConfigType.DOUBLE
LIST: Final = ConfigType.LIST
CLASS: Final = ConfigType.CLASS
PASSWORD: Final = ConfigType.PASSWORD

MAX_INT: Final = 2**31 - 1
MAX_LONG: Final = 2**63 - 1


class ConfigSource(IntEnum):
    """The source of a value; the numbers are those of DescribeConfigs."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class UpdateMode(Enum):
    """Whether a broker config may change dynamically: never, per broker, or for the whole cluster."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


PER_BROKER: Final = UpdateMode.PER_BROKER
CLUSTER_WIDE: Final = UpdateMode.CLUSTER_WIDE


class Required(Enum):
    """The default of a required config."""

    REQUIRED = "(required)"


REQUIRED: Final = Required.REQUIRED


class Validator(Protocol):
    """A rule for a parsed value; `str()` is the "valid values" of the documentation."""

    #: Whether duplicate entries of a list are removed.
    drops_duplicates: bool

    def check(self, name: str, value: ConfigValue) -> None:
        """Raise `ConfigError` unless `value` is valid."""
        ...


class ConfigKey(NamedTuple):
    name: str
    type: ConfigType
    default: ConfigValue | Required
    documentation: str
    valid: Validator | None = None
    update: UpdateMode = UpdateMode.READ_ONLY
    #: Shown to clients only if it is set.
    internal: bool = False

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    @property
    def default_text(self) -> str | None:
        """The default as text; None if there is none."""
        if isinstance(self.default, Required):
            return None
        return format_value(self.default)

    def parse(self, text: str) -> ConfigValue:
        """Parse and validate `text`; `ConfigError` if it is invalid."""
        value = self.read(text)
        if self.valid is not None:
            self.valid.check(self.name, value)
        return value

    def read(self, text: str) -> ConfigValue:
        """Parse `text` without validation; `ConfigError` if it is not of the type."""
        value = parse_type(self.name, text, self.type)
        if isinstance(value, tuple) and self.valid is not None and self.valid.drops_duplicates:
            return tuple(dict.fromkeys(value))
        return value


def table(*parts: Iterable[ConfigKey]) -> dict[str, ConfigKey]:
    """Combine tables of configs by name, sorted."""
    keys = sorted((key for part in parts for key in part), key=lambda key: key.name)
    return {key.name: key for key in keys}


_BLANK = "".join(map(chr, range(33)))
_INTEGER = r"[+-]?\d+"
_DECIMAL = r"[+-]?(?:Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)"
_HEXADECIMAL = r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
_COMMA = r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*"
_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def parse_type(name: str, text: str, config_type: ConfigType) -> ConfigValue:
    """Parse `text` as `config_type`, without validation."""
    trimmed = text.strip(_BLANK)
    match config_type:
        case ConfigType.BOOLEAN:
            return _parse_boolean(name, text, trimmed)
        case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
            return _parse_integer(name, text, trimmed, config_type)
        case ConfigType.DOUBLE:
            return _parse_double(name, text, trimmed)
        case ConfigType.LIST:
            return tuple(re.split(_COMMA, trimmed)) if trimmed else ()
        case _:
            return trimmed


def _parse_boolean(name: str, text: str, trimmed: str) -> bool:
    lowered = trimmed.lower()
    if lowered not in ("true", "false"):
        raise invalid_value(name, text, "Expected value to be either true or false")
    return lowered == "true"


def _parse_integer(name: str, text: str, trimmed: str, config_type: ConfigType) -> int:
    if re.fullmatch(_INTEGER, trimmed) and len(trimmed) <= 100:
        value = int(trimmed)
        limit = 1 << (_BITS[config_type] - 1)
        if -limit <= value < limit:
            return value
    raise invalid_value(name, text, f"Not a number of type {config_type.name}")


def _parse_double(name: str, text: str, trimmed: str) -> float:
    if re.fullmatch(_DECIMAL, trimmed):
        return float(trimmed.rstrip("fFdD"))
    if (hexadecimal := re.fullmatch(_HEXADECIMAL, trimmed)) is not None:
        return float.fromhex(hexadecimal[1])
    raise invalid_value(name, text, "Not a number of type DOUBLE")


def format_value(value: ConfigValue) -> str | None:
    """Format a value as clients see it; None if the config has no value."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return format_double(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def format_double(value: float) -> str:
    """Format a double as Java does: `0.5`, `1.0E-5`, `1.7976931348623157E308`, `Infinity`."""
    text = repr(value)
    if text in ("inf", "-inf", "nan"):
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[text]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return text
    sign, digits, exponent = _scientific(text)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _scientific(text: str) -> tuple[str, str, int]:
    """Sign, significant digits and decimal exponent of the shortest form of a double."""
    sign = "-" if text.startswith("-") else ""
    mantissa, _, exponent = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    leading = len(digits) - len(digits.lstrip("0"))
    return sign, digits.strip("0") or "0", int(exponent or 0) + len(whole) - 1 - leading
