"""The transition table of transactional ids against Kafka's `TransactionState.validPreviousStates`."""

from __future__ import annotations

import pytest

from moldau.statemachine.transitions import InvalidTransitionError
from moldau.transactions.state import (
    TRANSACTION_TRANSITIONS,
    Transaction,
    TransactionEvent,
    TransactionStatus,
)

EMPTY, ONGOING = TransactionStatus.EMPTY, TransactionStatus.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT
#: Kafka's table, for the states that transactions reach here.
VALID_PREVIOUS = {
    EMPTY: {EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT},
    ONGOING: {ONGOING, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT},
    PREPARE_COMMIT: {ONGOING},
    PREPARE_ABORT: {ONGOING, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT},
    COMPLETE_COMMIT: {PREPARE_COMMIT},
    COMPLETE_ABORT: {PREPARE_ABORT},
}


def test_transitions_are_kafkas() -> None:
    previous: dict[TransactionStatus, set[TransactionStatus]] = {}
    for state in VALID_PREVIOUS:
        for following in TRANSACTION_TRANSITIONS.rows[state].values():
            previous.setdefault(following, set()).add(state)
    assert previous == VALID_PREVIOUS
    assert set(TRANSACTION_TRANSITIONS.rows) == set(TransactionStatus)


def test_a_prepared_transaction_can_only_be_completed() -> None:
    for state in (PREPARE_COMMIT, PREPARE_ABORT):
        assert set(TRANSACTION_TRANSITIONS.rows[state]) == {TransactionEvent.MARKERS_WRITTEN}
    prepared = Transaction("t", 1, 1000, 0, status=PREPARE_COMMIT)
    with pytest.raises(InvalidTransitionError, match="ADD_PARTITIONS is not allowed in state PREPARE_COMMIT"):
        prepared.with_partitions(frozenset(), 2, 0)
