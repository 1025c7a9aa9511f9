"""Options that are set in several statements: `(name).a = 1` and `(name).b = 2` are one message."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.schemas.protobuf.elements import Literal, Option, OptionValue


def merged(options: Iterable[Option]) -> dict[str, Option]:
    """Return the options by name; messages of one name are merged, of other values the last counts."""
    result: dict[str, Option] = {}
    for option in options:
        name = option.name.removeprefix(".")
        option = as_map(option)
        previous = result.get(name)
        if previous is not None and isinstance(previous.value, dict) and isinstance(option.value, dict):
            option = option._replace(value=_merged_values(previous.value, option.value))
        result[name] = option
    return result


def _merged_values(first: dict[str, OptionValue], second: dict[str, OptionValue]) -> dict[str, OptionValue]:
    result = dict(first)
    for name, value in second.items():
        result[name] = accumulated(result[name], value) if name in result else value
    return result


def as_map(option: Option) -> Option:
    """Return an option `(name).path = value` as `(name) = { path: value }`."""
    if not isinstance(option.value, Option):
        return option
    inner = as_map(option.value)
    return option._replace(value={inner.name: inner.value})


def accumulated(first: OptionValue, second: OptionValue) -> list[OptionValue]:
    """Return the distinct values of two occurrences of a repeated field."""
    result: dict[object, OptionValue] = {}
    for value in (first, second):
        for item in value if isinstance(value, list) else [value]:
            result.setdefault(_key(item), item)
    return [*result.values()]


def _key(value: OptionValue) -> object:
    if isinstance(value, dict):
        return frozenset((name, _key(item)) for name, item in value.items())
    if isinstance(value, list):
        return tuple(map(_key, value))
    return (type(value) is Literal, value)
