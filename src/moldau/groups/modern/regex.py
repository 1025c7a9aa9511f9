"""Subscriptions by regular expression (KIP-848): validation, and matching against topic names.

The topics that an expression matches are stored with the group as a `ResolvedRegex`, together with the
offset of the metadata they were matched against. Matching all topics of a cluster may take long, so a
decision does not match: it requests the effect `ResolveRegexes`, and a later decision stores the result.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.re2_patterns import InvalidPatternError, compile_pattern
from moldau.statemachine.effects import ResolveRegexes

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    topics: frozenset[str]
    #: The offset of the metadata that the topics are taken from.
    version: int
    timestamp_ms: int


UNRESOLVED = ResolvedRegex(frozenset(), -1, -1)


def resolve_regexes(effect: ResolveRegexes) -> dict[str, ResolvedRegex]:
    """Match every expression of an effect; may run in any thread."""
    return {
        regex: ResolvedRegex(
            _matching(effect.group_id, regex, effect.topics), effect.metadata_offset, effect.timestamp_ms
        )
        for regex in effect.regexes
    }


def check_regex(regex: str) -> None:
    """Raise INVALID_REGULAR_EXPRESSION if RE2 refuses the expression."""
    problem = regex_problem(regex)
    if problem is not None:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {problem}.",
        )


def regex_problem(regex: str) -> str | None:
    """Return why RE2 refuses an expression, or None if it is valid."""
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
