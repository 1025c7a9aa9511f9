"""Subscriptions by regular expression: checking one, and finding the topics it matches.

Expressions are RE2's, as in Kafka: matching takes time in proportion to the name, whatever a client sends.
What an expression matches is stored with the group (`ResolvedRegex`) together with the metadata it was
matched against. Matching all topics of a cluster may take long, so it is not done where decisions are made:
they ask for it with a `ResolveRegexes`, whose `resolve` may run anywhere, and get the answer later.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.metadata.image import MetadataImage

log = logging.getLogger(__name__)

#: What RE2 says is wrong, and how RE2/J, which Kafka uses, says it.
_REASONS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid named capture group": "invalid named capture",
}
#: A pattern that would need more memory than this compiled is refused; RE2's own default is as much.
_MAX_MEMORY = 8 << 20


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    topics: frozenset[str]
    #: The offset of the metadata that was looked at.
    version: int
    timestamp_ms: int


UNRESOLVED = ResolvedRegex(frozenset(), -1, -1)


@dataclass(frozen=True, slots=True)
class ResolveRegexes:
    """The effect of a decision: match these expressions, and tell the shard what came out."""

    group_id: str
    regexes: tuple[str, ...]
    image: MetadataImage
    timestamp_ms: int

    def resolve(self) -> dict[str, ResolvedRegex]:
        topics = self.image.topics.by_name
        return {
            regex: ResolvedRegex(
                _matching(self.group_id, regex, topics), self.image.offset, self.timestamp_ms
            )
            for regex in self.regexes
        }


def check_regex(regex: str) -> None:
    """INVALID_REGULAR_EXPRESSION unless RE2 understands it."""
    problem = regex_problem(regex)
    if problem is not None:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {problem}.",
        )


def regex_problem(regex: str) -> str | None:
    """What is wrong with an expression; None if RE2 understands it."""
    try:
        _compile(regex)
    except _Invalid as error:
        return str(error)
    return None


def _matching(group_id: str, regex: str, topics: Iterable[str]) -> frozenset[str]:
    try:
        pattern = _compile(regex)
    except _Invalid as error:
        log.error("group %s subscribes to %r, which is no regular expression: %s", group_id, regex, error)
        return frozenset()
    return frozenset(topic for topic in topics if pattern.fullmatch(topic))


class _Invalid(ValueError):
    """RE2 does not understand an expression; the message is the kind of mistake."""


def _compile(regex: str) -> Any:
    # Imported with the first expression: it takes 4 MB, and most nodes never see one.
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        raise _Invalid(_reason(error)) from error


def _reason(error: Exception) -> str:
    """The kind of mistake without the piece of the pattern, in the words Kafka's clients are used to."""
    said = error.args[0] if error.args else ""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    kind = text.partition(":")[0]
    return _REASONS.get(kind, kind)
