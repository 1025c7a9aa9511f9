"""Masking: fields of decoded values that users must not see, by patterns of their names.

A rule is the name or the path of a field, `card*`, or such a rule for some topics, `payments-*:card*`. A
masked field is replaced before anything else sees the value: the table, filters, exports. A topic with a rule
fails closed: what cannot be taken apart into fields is hidden as a whole. The rule `*` hides every text.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final

MASK: Final = "••••"


class Masking:
    """The rules of all topics."""

    def __init__(self, rules: Iterable[str] = ()) -> None:
        pairs = [each.rpartition(":") for each in rules]
        self._rules = tuple((topic or "*", field.lower()) for topic, _, field in pairs)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def of(self, topic: str) -> FieldRules:
        """Return the rules of a topic."""
        return FieldRules(field for each, field in self._rules if fnmatchcase(topic, each))


class FieldRules:
    """The rules of one topic."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._patterns = tuple(patterns)
        self._hides = lru_cache(maxsize=10_000)(self._matches)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    @property
    def hides_all(self) -> bool:
        return "*" in self._patterns

    def hides(self, name: str) -> bool:
        """Return whether a field without a path, such as a header, is masked."""
        return self._hides(name.lower(), name.lower())

    def applied(self, value: Any, path: str = "") -> Any:
        """Return a value of JSON with masked fields; a pattern matches a name or a path from the value on."""
        if isinstance(value, dict):
            return {
                name: MASK
                if self._hides(str(name).lower(), f"{path}{name}".lower())
                else self.applied(each, f"{path}{name}.")
                for name, each in value.items()
            }
        if isinstance(value, list):
            return [self.applied(each, path) for each in value]
        return value

    def _matches(self, name: str, path: str) -> bool:
        return any(fnmatchcase(name, each) or fnmatchcase(path, each) for each in self._patterns)
