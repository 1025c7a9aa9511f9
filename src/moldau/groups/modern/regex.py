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

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.re2_patterns import InvalidPatternError, compile_pattern
from moldau.metadata.image import MetadataImage

logger = logging.getLogger(__name__)


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
        compile_pattern(regex)
    except InvalidPatternError as error:
        return str(error)
    return None


def _matching(group_id: str, regex: str, topics: Iterable[str]) -> frozenset[str]:
    try:
        pattern = compile_pattern(regex)
    except InvalidPatternError as error:
        logger.error("group %s subscribes to the invalid regular expression %r: %s", group_id, regex, error)
        return frozenset()
    return frozenset(topic for topic in topics if pattern.fullmatch(topic))
