"""Topic patterns as Kafka's tools read them: a regular expression over the whole name, commas mean "or"."""

from __future__ import annotations

import re

from moldau.base.ids import INTERNAL_TOPICS
from moldau.cli.shared.arguments import UsageError


class TopicPattern:
    def __init__(self, text: str) -> None:
        cleaned = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
        try:
            self._pattern = re.compile(cleaned)
        except re.error as error:
            raise UsageError(f"{text} is an invalid regex: {error}") from error

    def allows(self, topic: str, *, exclude_internal: bool = False) -> bool:
        if exclude_internal and topic in INTERNAL_TOPICS:
            return False
        return self._pattern.fullmatch(topic) is not None
