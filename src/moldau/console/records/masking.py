"""Masking: fields of decoded values that users must not see, by patterns of their names.

A masked field is replaced before anything else sees the value: the table, filters, exports. A value that
cannot be taken apart into fields (plain text, bytes) is not masked, unless a pattern is `*`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final

MASK: Final = "••••"


class Masking:
    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._patterns = tuple(each.lower() for each in patterns)
        self._hides = lru_cache(maxsize=10_000)(self._matches)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    @property
    def hides_all(self) -> bool:
        return "*" in self._patterns

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
