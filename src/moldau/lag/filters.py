"""Filters of groups and topics by name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from moldau.base.errors import ErrorCode, KafkaError


class NameFilter:
    """Allows names that are listed or match a regular expression as a whole; all, if none is listed."""

    def __init__(self, include: Iterable[str] = (), exclude: Iterable[str] = ()) -> None:
        self._included = [(text, _compiled(text)) for text in include]
        self._excluded = [(text, _compiled(text)) for text in exclude]

    @property
    def allows_all(self) -> bool:
        return not self._included and not self._excluded

    def allows(self, name: str) -> bool:
        if any(name == text or pattern.fullmatch(name) for text, pattern in self._excluded):
            return False
        if not self._included:
            return True
        return any(name == text or pattern.fullmatch(name) for text, pattern in self._included)


def _compiled(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"{text} is not a name or a regular expression: {error}"
        ) from None


ALL_NAMES = NameFilter()
