"""Fetch sessions: who is remembered, for how long, and what an incremental answer leaves out."""

from __future__ import annotations

import random
from typing import Any

import pytest

from moldau.base.clock import ManualClock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from moldau.server.partitions.fetch_sessions import FetchSession, FetchSessionCache, SessionKey


def request(*partitions: int, session: int = 0, epoch: int = 0, forget: tuple[int, ...] = ()) -> FetchRequest:
    topics = [FetchTopic(topic="t", partitions=[FetchPartition(partition=n) for n in partitions])]
    return FetchRequest(
        session_id=session,
        session_epoch=epoch,
        topics=topics if partitions else [],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=list(forget))] if forget else [],
    )


def key(partition: int) -> SessionKey:
    return ("t", ZERO_UUID, partition)


def answer(**fields: Any) -> PartitionData:
    return PartitionData(**{"high_watermark": 5, "log_start_offset": 0, "records": b"", **fields})


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def cache(clock: ManualClock) -> FetchSessionCache:
    return FetchSessionCache(clock, random.Random(0), slots=2)


def begin(cache: FetchSessionCache, *partitions: int) -> FetchSession:
    return cache.resolve(request(*partitions), False)


def go_on(cache: FetchSessionCache, session: FetchSession, *partitions: int, **more: Any) -> FetchSession:
    asked = request(*partitions, session=session.id, epoch=session.epoch, **more)
    return cache.resolve(asked, False)


def test_a_full_fetch_without_partitions_creates_a_session(cache: FetchSessionCache) -> None:
    assert begin(cache, 0, 1).cached
    assert begin(cache).cached


def test_a_sessionless_fetch_is_not_cached(cache: FetchSessionCache) -> None:
    session = cache.resolve(request(0, epoch=-1), False)
    assert not session.cached
    assert list(session.partitions) == [key(0)]
    assert not cache.sessions


def test_a_session_is_closed_by_the_final_epoch(cache: FetchSessionCache) -> None:
    session = begin(cache, 0)
    cache.resolve(request(0, session=session.id, epoch=-1), False)
    assert not cache.sessions


def test_a_full_fetch_replaces_the_session_it_names(cache: FetchSessionCache) -> None:
    first = begin(cache, 0)
    second = cache.resolve(request(1, session=first.id), False)
    assert list(cache.sessions) == [second.id]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"session": 99, "epoch": 1}, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ({"epoch": 2}, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ({"epoch": -3}, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ],
)
def test_a_request_with_a_wrong_session_or_epoch_is_refused(
    cache: FetchSessionCache, change: dict[str, int], code: ErrorCode
) -> None:
    session = begin(cache, 0)
    with pytest.raises(KafkaError) as refused:
        cache.resolve(request(**{"session": session.id, **change}), False)  # type: ignore[arg-type]
    assert refused.value.code == code


def test_a_session_does_not_mix_topic_names_and_ids(cache: FetchSessionCache) -> None:
    session = begin(cache, 0)
    with pytest.raises(KafkaError) as refused:
        cache.resolve(request(session=session.id, epoch=1), True)
    assert refused.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_partitions_are_added_changed_and_forgotten(cache: FetchSessionCache) -> None:
    session = begin(cache, 0, 1)
    go_on(cache, session, 2)
    assert set(session.partitions) == {key(0), key(1), key(2)}
    go_on(cache, session, 1, forget=(0, 1))
    assert set(session.partitions) == {key(2)}


def test_a_session_that_forgets_everything_ends(cache: FetchSessionCache) -> None:
    session = begin(cache, 0)
    assert not go_on(cache, session, forget=(0,)).cached
    assert not cache.sessions


def test_epochs_wrap_around(cache: FetchSessionCache) -> None:
    session = begin(cache, 0)
    session.epoch = 2**31 - 1
    assert go_on(cache, session).epoch == 1


def test_an_incremental_response_contains_only_changes(cache: FetchSessionCache) -> None:
    session = begin(cache, 0)
    assert session.record_response(key(0), answer()), "a full answer has everything"
    go_on(cache, session)
    assert not session.record_response(key(0), answer())
    assert session.record_response(key(0), answer(high_watermark=6))
    assert session.record_response(key(0), answer(high_watermark=6, log_start_offset=2))
    assert session.record_response(key(0), answer(high_watermark=6, log_start_offset=2, records=b"r"))
    assert not session.record_response(key(0), answer(high_watermark=6, log_start_offset=2))


def test_a_partition_is_sent_after_an_error_and_after_its_end(cache: FetchSessionCache) -> None:
    session = begin(cache, 0)
    session.record_response(key(0), answer())
    go_on(cache, session)
    failed = answer(error_code=ErrorCode.OFFSET_OUT_OF_RANGE, high_watermark=-1)
    assert session.record_response(key(0), failed)
    assert session.record_response(key(0), failed)
    assert session.record_response(key(0), answer())
    assert not session.record_response(key(0), answer())


def test_partitions_with_records_move_to_the_end(cache: FetchSessionCache) -> None:
    session = begin(cache, 0, 1, 2)
    session.record_response(key(0), answer(records=b"r"))
    assert list(session.partitions) == [key(1), key(2), key(0)]


def test_a_full_cache_keeps_sessions_in_use(cache: FetchSessionCache, clock: ManualClock) -> None:
    first, second = begin(cache, 0), begin(cache, 1)
    assert not begin(cache, 2, 3).cached
    clock.advance(121_000)
    go_on(cache, second)
    third = begin(cache, 4)
    assert third.cached
    assert set(cache.sessions) == {second.id, third.id}
    with pytest.raises(KafkaError):
        go_on(cache, first)


def test_a_larger_session_evicts_an_old_smaller_one(cache: FetchSessionCache, clock: ManualClock) -> None:
    small, large = begin(cache, 0), begin(cache, 1, 2, 3)
    clock.advance(121_000)
    go_on(cache, small)
    go_on(cache, large)
    assert not begin(cache, 4).cached, "no larger than the smallest"
    third = begin(cache, 5, 6)
    assert set(cache.sessions) == {large.id, third.id}
    assert not begin(cache, 7, 8, 9).cached, "the smallest is too young"


def test_without_slots_no_session_is_cached(clock: ManualClock) -> None:
    assert not begin(FetchSessionCache(clock, random.Random(0), slots=0), 0).cached
