"""Validators of config values, with Kafka's own error messages.

Each validator is a small class with `check`; its `str()` is the "valid values" of the documentation. Those
for addresses are in `listeners` and `quorum_voters`. Every tool imports these classes, so patterns are
compiled at first use.
"""

from __future__ import annotations

import re

from moldau.config.definition import ConfigError, ConfigValue, format_double, invalid_value


class Range:
    """A number with a minimum and optionally a maximum."""

    drops_duplicates = False
    __slots__ = ("highest", "lowest")

    def __init__(self, lowest: float, highest: float | None = None) -> None:
        self.lowest = lowest
        self.highest = highest

    def check(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, int | float):
            raise invalid_value(name, value, "Value must be non-null")
        if value < self.lowest:
            raise invalid_value(name, value, f"Value must be at least {_bound(self.lowest)}")
        if self.highest is not None and value > self.highest:
            raise invalid_value(name, value, f"Value must be no more than {_bound(self.highest)}")

    def __str__(self) -> str:
        end = "" if self.highest is None else f",{_bound(self.highest)}"
        return f"[{_bound(self.lowest)},...{end}]"


def _bound(value: float) -> str:
    return str(int(value)) if value == int(value) else format_double(value)


def at_least(lowest: float) -> Range:
    return Range(lowest)


def between(lowest: float, highest: float) -> Range:
    return Range(lowest, highest)


class OneOf:
    """One of several strings."""

    drops_duplicates = False
    __slots__ = ("allowed",)

    def __init__(self, allowed: tuple[str, ...]) -> None:
        self.allowed = allowed

    def check(self, name: str, value: ConfigValue) -> None:
        if value not in self.allowed:
            raise invalid_value(name, value, f"String must be one of: {', '.join(self.allowed)}")

    def __str__(self) -> str:
        return f"[{', '.join(self.allowed)}]"


class OneOfAnyCase:
    """One of several strings, case-insensitive."""

    drops_duplicates = False
    __slots__ = ("allowed",)

    def __init__(self, allowed: tuple[str, ...]) -> None:
        self.allowed = allowed

    def check(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, str) or value.upper() not in self.allowed:
            reason = f"String must be one of (case insensitive): {', '.join(self.allowed)}"
            raise invalid_value(name, value, reason)

    def __str__(self) -> str:
        return f"(case insensitive) [{', '.join(self.allowed)}]"


class ListOf:
    """A list without empty entries; duplicates are removed."""

    drops_duplicates = True
    __slots__ = ("allowed", "empty_allowed", "null_allowed")

    def __init__(
        self, allowed: tuple[str, ...] = (), *, empty_allowed: bool = True, null_allowed: bool = False
    ) -> None:
        self.allowed = allowed
        self.empty_allowed = empty_allowed
        self.null_allowed = null_allowed

    def check(self, name: str, value: ConfigValue) -> None:
        if value is None:
            if self.null_allowed:
                return
            raise ConfigError(f"Configuration '{name}' values must not be null.")
        entries = value if isinstance(value, tuple) else (str(value),)
        if not entries and not self.empty_allowed:
            choices = str(self) or "any non-empty value"
            raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: {choices}")
        for entry in entries:
            if not entry:
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if self.allowed and entry not in self.allowed:
                raise invalid_value(name, entry, f"String must be one of: {', '.join(self.allowed)}")

    def __str__(self) -> str:
        return f"[{', '.join(self.allowed)}]" if self.allowed else ""


class NonEmpty:
    """A string of at least one character, or null."""

    drops_duplicates = False

    def check(self, name: str, value: ConfigValue) -> None:
        if value == "":
            raise invalid_value(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "non-empty string"


class NonNull:
    """Any string, including the empty one, but not null."""

    drops_duplicates = False

    def check(self, name: str, value: ConfigValue) -> None:
        if value is None:
            raise invalid_value(name, value, "entry must be non null")

    def __str__(self) -> str:
        return "non-null string"


class GzipLevel:
    """1 to 9, or -1 for zlib's default."""

    drops_duplicates = False

    def check(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, int):
            raise invalid_value(name, value, "Value must be non-null")
        if value != -1 and not 1 <= value <= 9:
            raise invalid_value(name, value, "Value must be between 1 and 9 or equal to -1")

    def __str__(self) -> str:
        return "[1,...,9] or -1"


class ThrottledReplicas:
    """Replicas as `partition:broker` pairs, or `*` for all of them."""

    drops_duplicates = False

    def check(self, name: str, value: ConfigValue) -> None:
        entries = value if isinstance(value, tuple) else ()
        if entries == ("*",) or all(re.fullmatch(r"[0-9]+:[0-9]+", entry) for entry in entries):
            return
        reason = f"{name} must be the literal '*' or a list of replicas in the following format: {self}"
        raise invalid_value(name, value, reason)

    def __str__(self) -> str:
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


_DURATION = r"(?i)\+?P(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:[.,]\d{0,9})?S)?)?"


class ShareOffsetReset:
    """The start of a share group: `earliest`, `latest`, or `by_duration:` with an ISO 8601 duration."""

    drops_duplicates = False

    def check(self, name: str, value: ConfigValue) -> None:
        if value in ("earliest", "latest"):
            return
        prefix, _, duration = str(value).partition(":")
        if prefix == "by_duration" and len(duration) > 2 and re.fullmatch(_DURATION, duration):
            return
        reason = (
            f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', "
            "'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        )
        raise invalid_value(name, value, reason)

    def __str__(self) -> str:
        return "[latest, earliest, by_duration:PnDTnHnMn.nS]"
