"""Names and regular expressions in lists, as MirrorMaker 2 matches them: the whole name, excludes first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from moldau.pipelines.mirror.config.definitions import MirrorConfigError


@dataclass(frozen=True, slots=True)
class NameFilter:
    """An empty list of names matches no name."""

    include: re.Pattern[str] | None
    exclude: re.Pattern[str] | None

    @classmethod
    def of(cls, setting: str, include: Sequence[str], exclude: Sequence[str]) -> NameFilter:
        return cls(pattern_of(setting, include), pattern_of(f"{setting}.exclude", exclude))

    def allows(self, name: str) -> bool:
        included = self.include is not None and self.include.fullmatch(name) is not None
        return included and (self.exclude is None or self.exclude.fullmatch(name) is None)


def pattern_of(setting: str, names: Sequence[str]) -> re.Pattern[str] | None:
    """Return the pattern that matches any of the names and expressions; None for an empty list."""
    for name in names:
        try:
            re.compile(name)
        except re.error as error:
            raise MirrorConfigError(f"{setting}: {name!r} is not a regular expression: {error}") from error
    return re.compile("|".join(f"(?:{name})" for name in names)) if names else None
