"""Bounds for data by schemas that clients choose, and that the event loop pays for.

- Patterns are searched with RE2, in linear time. The package jsonschema searches with Python's `re`, where a
  short pattern can take hours; its modules have no other hook than the name `re`.
- A validation ends after `MAX_SECONDS`: references that branch take exponential time in any validator. The
  alarm of the process interrupts it, so the bound holds in the main thread only, where the loop runs.
- Arrays of Avro whose items take no bytes are not read: a record of a few bytes could hold billions.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from moldau.schemas.json.patterns import Pattern, PatternError

MAX_SECONDS: Final = 1.0


class ValidationTooSlow(ValueError):
    pass


class _LinearSearch:
    """Takes the place of the module `re` in the validators."""

    @staticmethod
    def search(pattern: str, value: str) -> bool:
        try:
            compiled = Pattern(pattern)
        except PatternError as error:
            raise ValueError(f"the pattern {pattern!r} is not valid: {error}") from None
        if not compiled.evaluated:
            raise ValueError(f"the pattern {pattern!r} cannot be searched in linear time")
        return compiled.found_in(value)


def use_linear_patterns() -> None:
    """Let the validators of this process search with RE2."""
    from jsonschema import _keywords, _legacy_keywords, _utils

    for module in (_keywords, _legacy_keywords, _utils):
        vars(module)["re"] = _LinearSearch


@contextmanager
def bounded_time() -> Iterator[None]:
    """Raise `ValidationTooSlow` if the code takes longer than `MAX_SECONDS`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGALRM, _interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, previous)


def _interrupt(number: int, frame: FrameType | None) -> Any:
    raise ValidationTooSlow(f"the validation takes longer than {MAX_SECONDS:.0f} s")


def has_items_without_bytes(schema: Any, named: Mapping[str, Any]) -> bool:
    """Return whether an Avro schema contains an array whose items take no bytes; `named` has its types."""
    return any(_contains_empty_items(each, named) for each in (schema, *named.values()))


def _contains_empty_items(schema: Any, named: Mapping[str, Any]) -> bool:
    if isinstance(schema, list):
        return any(_contains_empty_items(each, named) for each in schema)
    if not isinstance(schema, dict):
        return False
    if schema["type"] == "array":
        items = schema["items"]
        return _is_empty(items, named, frozenset()) or _contains_empty_items(items, named)
    inner = [schema.get("values"), schema["type"], *(each["type"] for each in schema.get("fields", ()))]
    return any(_contains_empty_items(each, named) for each in inner)


def _is_empty(schema: Any, named: Mapping[str, Any], above: frozenset[str]) -> bool:
    """Return whether all values of a schema take no bytes; `above` has the records that contain it."""
    if isinstance(schema, str):
        if schema in above or schema not in named:
            return schema == "null"
        return _is_empty(named[schema], named, above | {schema})
    if not isinstance(schema, dict):
        return False
    if schema["type"] == "record":
        within = above | {schema["name"]}
        return all(_is_empty(each["type"], named, within) for each in schema["fields"])
    return schema["type"] == "null" or (schema["type"] == "fixed" and int(schema["size"]) == 0)
