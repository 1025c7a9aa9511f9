from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.transactions.listing import TransactionFilter
from moldau.transactions.state import Transaction, TransactionStatus

NOW = 100_000
IDLE = Transaction("idle-1", producer_id=1, timeout_ms=1, updated_ms=1)
OPEN = Transaction(
    "open-2",
    producer_id=2,
    timeout_ms=1,
    updated_ms=1,
    status=TransactionStatus.ONGOING,
    started_ms=NOW - 500,
)


def admitted(wanted: TransactionFilter) -> list[str]:
    return [each.transactional_id for each in (IDLE, OPEN) if wanted.admits(each, NOW)]


def test_without_a_filter_everything() -> None:
    assert admitted(TransactionFilter()) == ["idle-1", "open-2"]
    assert admitted(TransactionFilter(pattern="")) == ["idle-1", "open-2"]


def test_by_state_producer_duration_and_name() -> None:
    assert admitted(TransactionFilter(["Ongoing"])) == ["open-2"]
    assert admitted(TransactionFilter(["Ongoing", "Empty"])) == ["idle-1", "open-2"]
    assert admitted(TransactionFilter(producer_ids=[1, 9])) == ["idle-1"]
    assert admitted(TransactionFilter(duration_ms=499)) == ["idle-1", "open-2"]
    assert admitted(TransactionFilter(duration_ms=500)) == ["idle-1"]
    assert admitted(TransactionFilter(pattern="open-.*")) == ["open-2"]
    assert admitted(TransactionFilter(pattern="open")) == []


def test_states_nobody_knows_admit_nothing_and_are_named() -> None:
    wanted = TransactionFilter(["ongoing", "Nonsense", "ongoing"])
    assert admitted(wanted) == []
    assert wanted.unknown_states == ["ongoing", "Nonsense"]


def test_a_pattern_that_is_none() -> None:
    with pytest.raises(KafkaError) as refused:
        TransactionFilter(pattern="(")
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
