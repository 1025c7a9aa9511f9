"""Transaction verification (KIP-890): the first batch of a transaction is verified with the coordinator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.storage.log.append import Origin
from moldau.storage.log.log import Log
from moldau.storage.producers.verification import Guard
from tests.unit.storage.log.one_log import NOW, Folder, batch, marker


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Folder(tmp_path).open()


def begin(log: Log, *, epoch: int = 0, sequence: int = 0, per_transaction: bool = False) -> Guard | None:
    return log.producer_state.begin_verification(
        1, epoch, sequence, epoch_per_transaction=per_transaction, now_ms=NOW
    )


def send(log: Log, guard: Guard | None, *, epoch: int = 0, sequence: int = 0) -> None:
    data = batch(producer_id=1, producer_epoch=epoch, base_sequence=sequence, is_transactional=True)
    log.append_as_leader(data, 0, guard=guard)


def end(log: Log, *, epoch: int = 0, version: int = 0, coordinator_epoch: int = 0) -> None:
    data = marker(commit=True, producer_id=1, producer_epoch=epoch, coordinator_epoch=coordinator_epoch)
    log.append_as_leader(data, 0, origin=Origin.COORDINATOR, transaction_version=version)


def refusal(work: Any, *arguments: Any, **options: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        work(*arguments, **options)
    return refused.value.code


def test_unverified_transaction_is_refused(log: Log) -> None:
    assert refusal(send, log, None) is ErrorCode.INVALID_TXN_STATE
    assert refusal(send, log, Guard()) is ErrorCode.INVALID_TXN_STATE
    assert log.log_end_offset == 0


def test_open_transaction_needs_no_guard(log: Log) -> None:
    send(log, begin(log))
    assert begin(log, sequence=1) is None
    send(log, None, sequence=1)


def test_marker_invalidates_the_guard(log: Log) -> None:
    """The coordinator verified a transaction that has ended since."""
    guard = begin(log)
    end(log)
    assert refusal(send, log, guard) is ErrorCode.INVALID_TXN_STATE


def test_marker_of_the_previous_transaction_keeps_the_guard_valid(log: Log) -> None:
    """The next transaction has the epoch in the marker of the previous transaction."""
    send(log, begin(log, per_transaction=True))
    guard = begin(log, epoch=1, per_transaction=True)
    end(log, epoch=1, version=2)
    send(log, guard, epoch=1)


def test_verifications_of_one_producer_share_a_guard_and_the_lowest_sequence_is_first(log: Log) -> None:
    guard = begin(log, sequence=5)
    assert begin(log, sequence=3) is guard
    assert refusal(send, log, guard, sequence=5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, guard, sequence=3)


def test_transaction_v2_sequences_start_at_0(log: Log) -> None:
    guard = begin(log, sequence=3, per_transaction=True)
    assert refusal(send, log, guard, sequence=3) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_fenced_epoch_is_refused_before_verification(log: Log) -> None:
    send(log, begin(log, epoch=5), epoch=5)
    assert refusal(begin, log, epoch=4) is ErrorCode.INVALID_PRODUCER_EPOCH
    end(log, epoch=6, version=2)
    assert refusal(begin, log, epoch=5) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_transaction_v2_marker_has_the_next_epoch(log: Log) -> None:
    send(log, begin(log, epoch=1), epoch=1)
    assert refusal(end, log, epoch=1, version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(end, log, epoch=0, version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    end(log, epoch=2, version=2)
    end(log, epoch=2, version=2)
    assert refusal(end, log, epoch=1, version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.last_stable_offset <= log.log_end_offset


def test_fenced_coordinator_cannot_end_a_transaction(log: Log) -> None:
    end(log, epoch=1, version=2, coordinator_epoch=4)
    send(log, begin(log, epoch=1, per_transaction=True), epoch=1)
    assert refusal(end, log, epoch=2, version=2, coordinator_epoch=3) is (
        ErrorCode.TRANSACTION_COORDINATOR_FENCED
    )


def test_unanswered_verifications_expire(log: Log) -> None:
    guard = begin(log)
    log.producer_state.remove_expired(NOW + log.producer_state.expiration_ms)
    assert refusal(send, log, guard) is ErrorCode.INVALID_TXN_STATE
