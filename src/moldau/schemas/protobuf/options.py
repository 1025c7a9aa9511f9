"""Options that are set in several statements: `(name).a = 1` and `(name).b = 2` are one message."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.schemas.protobuf.elements import Literal, Option, OptionValue


def merged(options: Iterable[Option]) -> dict[str, Option]:
    """Return the options by name; messages of one name are merged, of other values the last counts."""
    occurrences: dict[str, list[Option]] = {}
    for option in options:
        option = as_map(option)
        same_name = occurrences.setdefault(option.name.removeprefix("."), [])
        if same_name and not (isinstance(same_name[-1].value, dict) and isinstance(option.value, dict)):
            same_name.clear()
        same_name.append(option)
    return {name: _merged(same_name) for name, same_name in occurrences.items()}


def _merged(options: list[Option]) -> Option:
    if len(options) == 1:
        return options[0]
    values = by_key(option.value for option in options)
    merged_values = {
        key: items[0] if len(items) == 1 else accumulated(items) for key, items in values.items()
    }
    return options[-1]._replace(value=merged_values)


def by_key(maps: Iterable[OptionValue]) -> dict[str, list[OptionValue]]:
    """Return the values of each key of several maps, in their order."""
    values: dict[str, list[OptionValue]] = {}
    for items in maps:
        for key, value in items.items() if isinstance(items, dict) else ():
            values.setdefault(key, []).append(value)
    return values


def as_map(option: Option) -> Option:
    """Return an option `(name).path = value` as `(name) = { path: value }`."""
    if not isinstance(option.value, Option):
        return option
    inner = as_map(option.value)
    return option._replace(value={inner.name: inner.value})


def accumulated(values: Iterable[OptionValue]) -> list[OptionValue]:
    """Return the distinct values of the occurrences of a repeated field."""
    result: dict[object, OptionValue] = {}
    for value in values:
        for item in value if isinstance(value, list) else [value]:
            result.setdefault(_key(item), item)
    return [*result.values()]


def _key(value: OptionValue) -> object:
    if isinstance(value, dict):
        return frozenset((name, _key(item)) for name, item in value.items())
    if isinstance(value, list):
        return tuple(map(_key, value))
    return (type(value) is Literal, value)
