"""Share sessions: what each request tells the leader, and which offsets are acknowledged unasked."""

from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Uuid
from moldau.client.share.session import ACCEPT, FINAL_EPOCH, GAP, REJECT, FetchLimits, Place, ShareSession
from moldau.protocol.messages import share_fetch
from moldau.protocol.records import Record, build_batch

TOPIC = Uuid(b"t" * 16)
FIRST: Place = (TOPIC, 0)
SECOND: Place = (TOPIC, 1)


def answer(
    first: int, last: int, *records: Record, error: ErrorCode = ErrorCode.NONE
) -> share_fetch.ShareFetchResponse:
    """Offsets `first` to `last` of the first partition were acquired; these records are in the log."""
    acquired = [share_fetch.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=3)]
    data = build_batch(records, base_offset=records[0].offset) if records else b""
    partition = share_fetch.PartitionData(partition_index=0, records=data, acquired_records=acquired)
    topic = share_fetch.ShareFetchableTopicResponse(topic_id=TOPIC, partitions=[partition])
    return share_fetch.ShareFetchResponse(error_code=error, responses=[topic])


def told(request: share_fetch.ShareFetchRequest) -> list[tuple[int, list[tuple[int, int, list[int]]]]]:
    """The partitions a request names, each with its acknowledgements."""
    return [
        (
            each.partition_index,
            [(b.first_offset, b.last_offset, b.acknowledge_types) for b in each.acknowledgement_batches],
        )
        for topic in request.topics
        for each in topic.partitions
    ]


@pytest.fixture
def session() -> ShareSession:
    return ShareSession("group", "member", FetchLimits())


def record(offset: int) -> Record:
    return Record(offset, 1000, None, b"value")


def test_share_fetch_contains_changes_and_the_next_epoch(session: ShareSession) -> None:
    opening = session.fetch_request({FIRST, SECOND})
    assert (opening.share_session_epoch, told(opening)) == (0, [(0, []), (1, [])])
    session.fetched(share_fetch.ShareFetchResponse())
    following = session.fetch_request({SECOND})
    assert (following.share_session_epoch, told(following)) == (1, [])
    assert [each.partitions for each in following.forgotten_topics_data] == [[0]]


def test_consecutive_equal_acknowledgements_are_batched(session: ShareSession) -> None:
    session.fetch_request({FIRST})
    records = session.fetched(answer(5, 8, *map(record, range(4, 10))))
    assert [(each.record.offset, each.delivery_count) for each in records] == [(n, 3) for n in range(5, 9)]
    for each in records:
        session.acknowledge(FIRST, each.record.offset, REJECT if each.record.offset == 7 else ACCEPT)
    expected = [(5, 6, [ACCEPT]), (7, 7, [REJECT]), (8, 8, [ACCEPT])]
    assert told(session.fetch_request({FIRST})) == [(0, expected)]


def test_offsets_without_a_record_are_acknowledged_as_gaps(session: ShareSession) -> None:
    session.fetch_request({FIRST})
    assert len(session.fetched(answer(0, 3, record(0), record(2)))) == 2
    last = session.final_request()
    batches = last.topics[0].partitions[0].acknowledgement_batches
    assert last.share_session_epoch == FINAL_EPOCH
    assert [(b.first_offset, b.last_offset, b.acknowledge_types) for b in batches] == [
        (1, 1, [GAP]),
        (3, 3, [GAP]),
    ]


def test_new_session_drops_old_acknowledgements(session: ShareSession) -> None:
    session.fetch_request({FIRST})
    session.fetched(answer(0, 0, record(0)))
    session.acknowledge(FIRST, 0, ACCEPT)
    with pytest.raises(KafkaError):
        session.fetched(answer(0, 0, error=ErrorCode.SHARE_SESSION_NOT_FOUND))
    session.forget()
    session.acknowledge(FIRST, 0, ACCEPT)
    again = session.fetch_request({FIRST})
    assert (again.share_session_epoch, told(again)) == (0, [(0, [])])
