"""Answers per item: one refusal must not spoil the rest of a request."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError

#: The sentence clients get where Kafka says nothing more specific than the code.
_SENTENCES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
    ErrorCode.TOPIC_DELETION_DISABLED: "Topic deletion is disabled.",
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
}

#: A request may not lead to more records than this.
MAX_RECORDS_PER_REQUEST = 10_000


def generic(code: ErrorCode) -> KafkaError:
    """An error with Kafka's own sentence for its code."""
    return KafkaError(code, _SENTENCES.get(code))


def check_record_count(count: int) -> None:
    if count > MAX_RECORDS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
