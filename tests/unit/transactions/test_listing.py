from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.transactions.listing import TransactionFilter
from moldau.transactions.state import Transaction, TransactionStatus

NOW = 100_000
IDLE = Transaction("idle-1", producer_id=1, timeout_ms=1, updated_ms=1)
ONGOING = Transaction(
    "open-2",
    producer_id=2,
    timeout_ms=1,
    updated_ms=1,
    status=TransactionStatus.ONGOING,
    started_ms=NOW - 500,
)


def listed(filter_: TransactionFilter) -> list[str]:
    return [each.transactional_id for each in (IDLE, ONGOING) if filter_.matches(each, NOW)]


def test_an_empty_filter_matches_all_transactions() -> None:
    assert listed(TransactionFilter()) == ["idle-1", "open-2"]
    assert listed(TransactionFilter(pattern="")) == ["idle-1", "open-2"]


def test_transactions_are_filtered_by_state_producer_id_duration_and_pattern() -> None:
    assert listed(TransactionFilter(["Ongoing"])) == ["open-2"]
    assert listed(TransactionFilter(["Ongoing", "Empty"])) == ["idle-1", "open-2"]
    assert listed(TransactionFilter(producer_ids=[1, 9])) == ["idle-1"]
    assert listed(TransactionFilter(duration_ms=499)) == ["idle-1", "open-2"]
    assert listed(TransactionFilter(duration_ms=500)) == ["idle-1"]
    assert listed(TransactionFilter(pattern="open-.*")) == ["open-2"]
    assert listed(TransactionFilter(pattern="open")) == []


def test_unknown_states_match_nothing_and_are_reported() -> None:
    unknown = TransactionFilter(["ongoing", "Nonsense", "ongoing"])
    assert listed(unknown) == []
    assert unknown.unknown_states == ["ongoing", "Nonsense"]


def test_an_invalid_pattern_is_refused() -> None:
    with pytest.raises(KafkaError) as refused:
        TransactionFilter(pattern="(")
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
