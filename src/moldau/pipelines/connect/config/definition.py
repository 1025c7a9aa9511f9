"""Definitions of settings (Kafka's ConfigDef): names, types, defaults, validators, and how a form shows them.

A definition parses properties to typed values or fails with the first error; `validate` instead returns a
value, all errors and the recommended values of every setting, which the REST API serves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

from moldau.pipelines.connect.data.errors import ConfigError
from moldau.pipelines.connect.data.struct import java_class


class ConfigType(Enum):
    BOOLEAN = "boolean"
    STRING = "string"
    INT = "int"
    SHORT = "short"
    LONG = "long"
    DOUBLE = "double"
    LIST = "list"
    CLASS = "class"
    PASSWORD = "password"


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Width(Enum):
    NONE = "none"
    SHORT = "short"
    MEDIUM = "medium"
    LONG = "long"


class Password:
    """A secret: its text form is hidden, `value` is the secret itself."""

    HIDDEN = "[hidden]"
    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return self.HIDDEN


class _NoDefault(Enum):
    NO_DEFAULT = "no default"


NO_DEFAULT = _NoDefault.NO_DEFAULT

#: Checks a parsed value; raises ConfigError. Its text form describes the valid values.
Validator = Callable[[str, Any], None]


class Recommender(Protocol):
    """Valid values of a setting, and whether a form shows it, by the values of the others."""

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> list[Any]: ...

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool: ...


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """The definition of one setting. A default is parsed and checked like a value."""

    name: str
    type: ConfigType
    default: Any
    importance: Importance
    documentation: str
    validator: Validator | None = None
    group: str | None = None
    order_in_group: int = -1
    width: Width = Width.NONE
    display_name: str = ""
    dependents: tuple[str, ...] = ()
    recommender: Recommender | None = None
    internal: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "display_name", self.display_name or self.name)
        if self.has_default:
            object.__setattr__(self, "default", parse_type(self.name, self.default, self.type))
            if self.validator is not None:
                self.validator(self.name, self.default)

    @property
    def has_default(self) -> bool:
        return self.default is not NO_DEFAULT

    def parse(self, properties: Mapping[str, Any]) -> Any:
        """Return the typed value, which has passed the validator; duplicates in a `ValidList` are dropped."""
        value = self.value_in(properties)
        if isinstance(self.validator, ValidList) and isinstance(value, list):
            value = list(dict.fromkeys(value))
        if self.validator is not None:
            self.validator(self.name, value)
        return value

    def value_in(self, properties: Mapping[str, Any]) -> Any:
        if self.name in properties:
            return parse_type(self.name, properties[self.name], self.type)
        if self.has_default:
            return self.default
        raise ConfigError(f'Missing required configuration "{self.name}" which has no default value.')


@dataclass(slots=True)
class ConfigValue:
    """The result of validating one setting."""

    name: str
    value: Any = None
    recommended_values: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    visible: bool = True


class ConfigDef:
    """An ordered collection of definitions."""

    def __init__(self, base: ConfigDef | None = None) -> None:
        self.keys: dict[str, ConfigKey] = dict(base.keys) if base else {}

    def define(
        self,
        name: str,
        type: ConfigType,
        default: Any,
        importance: Importance,
        documentation: str,
        **others: Any,
    ) -> ConfigDef:
        """Add a setting; `others` are the remaining attributes of `ConfigKey`. Return the definition."""
        return self.add(ConfigKey(name, type, default, importance, documentation, **others))

    def add(self, key: ConfigKey) -> ConfigDef:
        if key.name in self.keys:
            raise ConfigError(f"Configuration {key.name} is defined twice.")
        self.keys[key.name] = key
        return self

    def embed(self, prefix: str, group: str, first_order: int, other: ConfigDef) -> ConfigDef:
        """Add the settings of another definition below a prefix, shown in one group."""
        for order, key in enumerate(other.keys.values(), start=first_order):
            self.add(
                replace(
                    key,
                    name=prefix + key.name,
                    group=group,
                    order_in_group=order,
                    dependents=tuple(prefix + name for name in key.dependents),
                    recommender=key.recommender and _Embedded(prefix, key.recommender),
                )
            )
        return self

    @property
    def groups(self) -> list[str]:
        return list(dict.fromkeys(key.group for key in self.keys.values() if key.group is not None))

    def default_values(self) -> dict[str, Any]:
        return {key.name: key.default for key in self.keys.values() if key.has_default}

    def parse(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return all defined settings, typed; the first invalid one raises ConfigError."""
        if undefined := self._undefined_dependents():
            names = ",".join(undefined)
            raise ConfigError(
                f"Some configurations in are referred in the dependents, but not defined: {names}"
            )
        return {key.name: key.parse(properties) for key in self.keys.values()}

    def validate(self, properties: Mapping[str, Any]) -> dict[str, ConfigValue]:
        """Return value, errors and recommended values of every setting, by its name."""
        values = {name: ConfigValue(name) for name in self.keys}
        for name in self._undefined_dependents():
            error = f"{name} is referred in the dependents, but not defined."
            values[name] = ConfigValue(name, errors=[error], visible=False)
        for key in self.keys.values():
            _parse_into(values[key.name], key, properties)
        parsed = {name: value.value for name, value in values.items() if name in self.keys}
        for key in self.keys.values():
            _recommend(values[key.name], key, parsed)
        return values

    def _undefined_dependents(self) -> list[str]:
        named = (name for key in self.keys.values() for name in key.dependents)
        return [name for name in dict.fromkeys(named) if name not in self.keys]


@dataclass(frozen=True, slots=True)
class _Embedded:
    """A recommender below a prefix: it sees the settings under their own names."""

    prefix: str
    base: Recommender

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> list[Any]:
        return self.base.valid_values(name.removeprefix(self.prefix), self._without_prefix(parsed))

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        return self.base.visible(name.removeprefix(self.prefix), self._without_prefix(parsed))

    def _without_prefix(self, parsed: Mapping[str, Any]) -> dict[str, Any]:
        skipped = len(self.prefix)
        return {name[skipped:]: value for name, value in parsed.items() if name.startswith(self.prefix)}


def _parse_into(value: ConfigValue, key: ConfigKey, properties: Mapping[str, Any]) -> None:
    try:
        value.value = key.value_in(properties)
    except ConfigError as error:
        value.errors.append(str(error))
    if key.validator is not None:
        try:
            key.validator(key.name, value.value)
        except ConfigError as error:
            value.errors.append(str(error))


def _recommend(value: ConfigValue, key: ConfigKey, parsed: Mapping[str, Any]) -> None:
    if key.recommender is None:
        return
    try:
        value.recommended_values = key.recommender.valid_values(key.name, parsed)
        value.visible = key.recommender.visible(key.name, parsed)
    except ConfigError as error:
        value.errors.append(str(error))


_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_NUMBERS = {
    ConfigType.SHORT: "16-bit integer (short)",
    ConfigType.INT: "32-bit integer",
    ConfigType.LONG: "64-bit integer (long)",
    ConfigType.DOUBLE: "double",
}


def parse_type(name: str, value: Any, type: ConfigType) -> Any:
    """Return a value of the setting's type, from its text or from such a value. Classes remain names."""
    if value is None:
        return None
    if isinstance(value, str):
        return _parse_text(name, value, value.strip(), type)
    if type in _NUMBERS:
        return _typed_number(name, value, type)
    if type is ConfigType.BOOLEAN:
        if isinstance(value, bool):
            return value
        raise ConfigError.invalid(name, value, "Expected value to be either true or false")
    if type is ConfigType.LIST:
        if isinstance(value, (list, tuple)):
            return list(value)
        raise ConfigError.invalid(name, value, "Expected a comma separated list.")
    if type is ConfigType.PASSWORD and isinstance(value, Password):
        return value
    if type is ConfigType.CLASS:
        raise ConfigError.invalid(name, value, "Expected a Class instance or class name.")
    raise ConfigError.invalid(name, value, f"Expected value to be a string, but it was a {java_class(value)}")


def _parse_text(name: str, value: str, text: str, type: ConfigType) -> Any:
    if type is ConfigType.BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise ConfigError.invalid(name, value, "Expected value to be either true or false")
        return text.lower() == "true"
    if type is ConfigType.PASSWORD:
        return Password(text)
    if type is ConfigType.LIST:
        return [entry.strip() for entry in text.split(",")] if text else []
    if type in _NUMBERS:
        return _parse_number(name, value, text, type)
    return text


def _parse_number(name: str, value: str, text: str, type: ConfigType) -> int | float:
    try:
        if "_" in text:
            raise ValueError(text)
        if type is ConfigType.DOUBLE:
            return float(text)
        number = int(text)
        if not -(1 << _BITS[type] - 1) <= number < 1 << _BITS[type] - 1:
            raise ValueError(text)
        return number
    except ValueError:
        raise ConfigError.invalid(name, value, f"Not a number of type {type.name}") from None


def _typed_number(name: str, value: Any, type: ConfigType) -> int | float:
    if type is ConfigType.DOUBLE and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if type is not ConfigType.DOUBLE and isinstance(value, int) and not isinstance(value, bool):
        return _parse_number(name, str(value), str(value), type)
    expected = f"Expected value to be a {_NUMBERS[type]}, but it was a {java_class(value)}"
    raise ConfigError.invalid(name, value, expected)


def convert_to_string(value: Any, type: ConfigType | None) -> str | None:
    """Return a parsed value as properties and the REST API show it; secrets are hidden."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if type is ConfigType.LIST:
        return ",".join(map(str, value))
    return str(value)


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers between two bounds, both included."""

    least: float | None = None
    most: float | None = None

    def __call__(self, name: str, value: Any) -> None:
        if value is None:
            raise ConfigError.invalid(name, None, "Value must be non-null")
        if self.least is not None and value < self.least:
            raise ConfigError.invalid(name, value, f"Value must be at least {self.least}")
        if self.most is not None and value > self.most:
            raise ConfigError.invalid(name, value, f"Value must be no more than {self.most}")

    def __str__(self) -> str:
        bounds = [str(bound) for bound in (self.least, self.most) if bound is not None]
        if len(bounds) == 2:
            return f"[{bounds[0]},...,{bounds[1]}]"
        return f"[{bounds[0]},...]" if self.least is not None else f"[...,{self.most}]"


@dataclass(frozen=True, slots=True)
class ValidString:
    """One of some strings, or a list of them."""

    strings: tuple[str, ...]
    ignore_case: bool = False

    def __call__(self, name: str, value: Any) -> None:
        for text in value if isinstance(value, list) else [value]:
            self._check(name, text)

    def _check(self, name: str, text: str | None) -> None:
        known = {string.upper() for string in self.strings} if self.ignore_case else set(self.strings)
        if text is not None and (text.upper() if self.ignore_case else text) in known:
            return
        case = " (case insensitive)" if self.ignore_case else ""
        strings = ", ".join(string.upper() if self.ignore_case else string for string in self.strings)
        raise ConfigError.invalid(name, text, f"String must be one of{case}: {strings}")

    def __str__(self) -> str:
        if self.ignore_case:
            return f"(case insensitive) [{', '.join(string.upper() for string in self.strings)}]"
        return f"[{', '.join(self.strings)}]"


@dataclass(frozen=True, slots=True)
class ValidList:
    """A list without duplicates and empty entries; with `strings`, of these only."""

    strings: tuple[str, ...] = ()
    empty_allowed: bool = True
    null_allowed: bool = False

    def __call__(self, name: str, value: Any) -> None:
        if value is None:
            if self.null_allowed:
                return
            raise ConfigError(f"Configuration '{name}' values must not be null.")
        if not value and not self.empty_allowed:
            valid = str(self) or "any non-empty value"
            raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: {valid}")
        if len(set(value)) != len(value):
            raise ConfigError(f"Configuration '{name}' values must not be duplicated.")
        if "" in value:
            raise ConfigError(f"Configuration '{name}' values must not be empty.")
        if self.strings:
            ValidString(self.strings)(name, value)

    def __str__(self) -> str:
        return f"[{', '.join(self.strings)}]" if self.strings else ""


@dataclass(frozen=True, slots=True)
class NonEmptyString:
    def __call__(self, name: str, value: Any) -> None:
        if value == "":
            raise ConfigError.invalid(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "non-empty string"


@dataclass(frozen=True, slots=True)
class NonEmptyStringWithoutControlChars:
    def __call__(self, name: str, value: Any) -> None:
        if value is None:
            return
        if value == "":
            raise ConfigError.invalid(name, value, "String may not be empty")
        if found := [ord(char) for char in value if ord(char) < 32 or 127 <= ord(char) < 160]:
            codes = ", ".join(map(str, found))
            reason = f"String may not contain control sequences but had the following ASCII chars: {codes}"
            raise ConfigError.invalid(name, value, reason)

    def __str__(self) -> str:
        return "non-empty string without ISO control characters"


@dataclass(frozen=True, slots=True)
class AllOf:
    """Several validators, applied in their order."""

    validators: tuple[Validator, ...]

    def __call__(self, name: str, value: Any) -> None:
        for validator in self.validators:
            validator(name, value)

    def __str__(self) -> str:
        return ",".join(map(str, self.validators))
