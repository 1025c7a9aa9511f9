"""Committed offsets: commits, transactions, fetches, deletion and expiration."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID
from moldau.groups.context import Requester
from moldau.protocol.messages.offset_commit import OffsetCommitRequest
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from moldau.protocol.stored.classic_groups import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from moldau.statemachine.coordinator_records import CoordinatorRecord, EndTransaction, Producer
from moldau.storage.log.config import LogConfig
from tests.harness.clients.classic import ClassicClient, commit_request, fetch_request, fetched
from tests.harness.worlds.coordination import Coordination, topic_id_of

MINUTE = 60_000
RAW = Requester(9, "raw", "/127.0.0.1")
SHORT = {"offsets.retention.minutes": "10", "offsets.retention.check.interval.ms": "60000"}


@pytest.fixture
def coordination() -> Coordination:
    made = Coordination(SHORT | {"group.initial.rebalance.delay.ms": "0"})
    made.create_topic("orders", 4)
    made.create_topic("prices")
    return made


def commit(
    coordination: Coordination, group_id: str = "g", topic: str = "orders", offset: int = 1, **more: Any
) -> int:
    """Commit one partition and return its error code."""
    requester = RAW._replace(api_version=more.pop("version", 9))
    request = commit_request(
        group_id, topic, more.pop("partition", 0), offset, metadata=more.pop("metadata", "")
    )
    for name, value in more.items():
        setattr(request, name, value)
    answer = coordination.answer(lambda shard: shard.commit_offsets(requester, request))
    code: int = answer.topics[0].partitions[0].error_code
    return code


def commit_in_transaction(
    coordination: Coordination, producer_id: int, offset: int, partition: int = 0, **more: Any
) -> int:
    committed = TxnOffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=more.pop("metadata", "")
    )
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="g",
        producer_id=producer_id,
        producer_epoch=0,
        topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[committed])],
    )
    for name, value in more.items():
        setattr(request, name, value)
    answer = coordination.answer(lambda shard: shard.commit_offsets_in_transaction(RAW, request))
    code: int = answer.topics[0].partitions[0].error_code
    return code


def end(coordination: Coordination, producer_id: int, *, committed: bool) -> None:
    marker = EndTransaction(Producer(producer_id, 0), committed, 0)
    coordination.answer(lambda shard: shard.end_transaction(marker))


def offsets(coordination: Coordination, group_id: str = "g") -> dict[tuple[str, int], int]:
    return fetched(coordination.shard, group_id)


def member(coordination: Coordination, name: str = "A", **settings: Any) -> ClassicClient:
    """Make a stable group with one member."""
    client = ClassicClient(coordination, name, **settings)
    client.join()
    coordination.pass_ms(0)
    client.sync()
    return client


def refusal(promise: Any) -> ErrorCode:
    assert promise.error is not None
    code: ErrorCode = promise.error.code
    return code


def test_a_commit_without_members_creates_a_group(coordination: Coordination) -> None:
    assert commit(coordination, offset=5, metadata="note") == ErrorCode.NONE
    answer = coordination.shard.fetch_offsets(fetch_request("g", "orders", 0, 1), require_stable=False)
    first, second = answer.topics[0].partitions
    assert (first.committed_offset, first.metadata, first.committed_leader_epoch) == (5, "note", -1)
    assert (second.committed_offset, second.metadata) == (-1, "")
    assert [group.group_id for group in coordination.shard.registry] == ["g"]


def test_offset_commit_records_equal_kafkas(coordination: Coordination) -> None:
    commit(coordination, offset=5, metadata=None)
    commit(coordination, offset=6, retention_time_ms=1000)
    (_, first), (_, second) = coordination.log.entries()
    assert isinstance(first, CoordinatorRecord) and isinstance(second, CoordinatorRecord)
    now = coordination.clock.time_ms()
    assert first.version == 4
    assert first.value == OffsetCommitValue(
        offset=5, leader_epoch=-1, metadata="", commit_timestamp=now, topic_id=topic_id_of("orders")
    )
    assert second.version == 1
    assert second.value == OffsetCommitValue(
        offset=6, metadata="", commit_timestamp=now, expire_timestamp=now + 1000
    )


def test_committed_offsets_are_loaded(coordination: Coordination) -> None:
    commit(coordination, offset=5)
    commit(coordination, offset=3)
    commit(coordination, topic="prices", offset=9)
    coordination.load()
    assert offsets(coordination) == {("orders", 0): 3, ("prices", 0): 9}


def test_too_large_metadata_fails_only_its_partition(coordination: Coordination) -> None:
    assert commit(coordination, metadata="x" * 4096) == ErrorCode.NONE
    assert commit(coordination, offset=9, metadata="x" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert offsets(coordination) == {("orders", 0): 1}


@pytest.mark.parametrize(
    ("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_generation_of_an_unknown_group_is_refused(
    coordination: Coordination, version: int, code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as refused:
        commit(coordination, version=version, generation_id_or_member_epoch=1)
    assert refused.value.code == code
    assert "g" not in coordination.shard.registry


def test_commits_require_the_current_generation(coordination: Coordination) -> None:
    client = member(coordination)
    assert client.commit("orders", 0, 5).error is None
    assert refusal(client.commit("orders", 0, 6, generation_id_or_member_epoch=9)) == (
        ErrorCode.ILLEGAL_GENERATION
    )
    assert refusal(client.commit("orders", 0, 6, member_id="x")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(client.commit("orders", 0, 6, group_instance_id="x")) == ErrorCode.UNKNOWN_MEMBER_ID
    nobody = {"generation_id_or_member_epoch": -1, "member_id": ""}
    assert refusal(client.commit("orders", 0, 6, **nobody)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert offsets(coordination) == {("orders", 0): 5}


def test_a_replaced_static_member_is_fenced(coordination: Coordination) -> None:
    old = member(coordination, instance="i")
    ClassicClient(coordination, "B", instance="i").join()
    assert refusal(old.commit("orders", 0, 5)) == ErrorCode.FENCED_INSTANCE_ID


def test_commits_are_refused_while_the_leader_assigns(coordination: Coordination) -> None:
    client = ClassicClient(coordination, "A")
    client.join()
    coordination.pass_ms(0)
    assert refusal(client.commit("orders", 0, 5)) == ErrorCode.REBALANCE_IN_PROGRESS
    in_transaction = {"generation_id": client.generation, "member_id": client.member_id}
    assert commit_in_transaction(coordination, 1, 5, **in_transaction) == ErrorCode.NONE


# Transactions.


def test_transactional_offsets_are_visible_once_committed(coordination: Coordination) -> None:
    commit(coordination, offset=1)
    commit_in_transaction(coordination, 7, 5)
    assert offsets(coordination) == {("orders", 0): 1}
    unstable = coordination.shard.fetch_offsets(fetch_request("g", "orders", 0, 1), require_stable=True)
    codes = [each.error_code for each in unstable.topics[0].partitions]
    assert codes == [ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.NONE]
    assert fetched(coordination.shard, "g", require_stable=True) == {}
    coordination.load()
    end(coordination, 7, committed=True)
    assert offsets(coordination) == {("orders", 0): 5}
    assert fetched(coordination.shard, "g", require_stable=True) == {("orders", 0): 5}
    coordination.load()
    assert offsets(coordination) == {("orders", 0): 5}


def test_transactional_offsets_are_dropped_on_abort(coordination: Coordination) -> None:
    commit(coordination, offset=1)
    commit_in_transaction(coordination, 7, 5)
    commit_in_transaction(coordination, 8, 6)
    end(coordination, 7, committed=False)
    assert fetched(coordination.shard, "g", require_stable=True) == {}
    end(coordination, 8, committed=True)
    assert offsets(coordination) == {("orders", 0): 6}


def test_a_transaction_that_ends_late_does_not_undo_a_newer_commit(coordination: Coordination) -> None:
    commit_in_transaction(coordination, 7, 5)
    commit(coordination, offset=9)
    end(coordination, 7, committed=True)
    assert offsets(coordination) == {("orders", 0): 9}


def test_the_end_of_an_unknown_transaction_is_ignored(coordination: Coordination) -> None:
    end(coordination, 99, committed=True)
    assert offsets(coordination) == {}


def test_transactional_commits_validate_the_member(coordination: Coordination) -> None:
    client = member(coordination)
    for fields, code in (
        ({"generation_id": 9, "member_id": client.member_id}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 1, "member_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "none", "generation_id": 1}, ErrorCode.ILLEGAL_GENERATION),
    ):
        with pytest.raises(KafkaError) as refused:
            commit_in_transaction(coordination, 1, 5, **fields)
        assert refused.value.code == code
    assert commit_in_transaction(coordination, 1, 5) == ErrorCode.NONE


def test_a_pending_offset_can_be_deleted(coordination: Coordination) -> None:
    commit_in_transaction(coordination, 7, 5)
    assert delete(coordination, "orders", 0) == [ErrorCode.NONE]
    end(coordination, 7, committed=True)
    assert offsets(coordination) == {}


# OffsetFetch.


def test_offsets_of_an_earlier_topic_with_the_same_name_are_not_returned(coordination: Coordination) -> None:
    commit(coordination, offset=5)
    for topic_id, offset in ((topic_id_of("orders"), 5), (topic_id_of("another"), -1), (ZERO_UUID, 5)):
        asked = OffsetFetchRequestTopics(name="orders", topic_id=topic_id, partition_indexes=[0])
        request = OffsetFetchRequestGroup(group_id="g", topics=[asked])
        answer = coordination.shard.fetch_offsets(request, require_stable=False)
        assert answer.topics[0].partitions[0].committed_offset == offset


def test_an_unknown_group_has_no_offsets(coordination: Coordination) -> None:
    answer = coordination.shard.fetch_offsets(fetch_request("none", "orders", 0), require_stable=False)
    assert (answer.error_code, answer.topics[0].partitions[0].committed_offset) == (0, -1)


# OffsetDelete and deleted topics.


def delete(coordination: Coordination, topic: str, *partitions: int) -> list[int]:
    asked = [OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
    request = OffsetDeleteRequest(
        group_id="g", topics=[OffsetDeleteRequestTopic(name=topic, partitions=asked)]
    )
    answer = coordination.answer(lambda shard: shard.delete_offsets(request))
    return [each.error_code for each in answer.topics[0].partitions]


def test_offsets_are_deleted_on_request(coordination: Coordination) -> None:
    commit(coordination, partition=0)
    commit(coordination, partition=1)
    assert delete(coordination, "orders", 0, 3) == [ErrorCode.NONE, ErrorCode.NONE]
    assert offsets(coordination) == {("orders", 1): 1}
    coordination.load()
    assert offsets(coordination) == {("orders", 1): 1}


def test_offsets_of_subscribed_topics_are_not_deleted(coordination: Coordination) -> None:
    client = member(coordination)
    client.commit("orders", 0, 5)
    client.commit("prices", 0, 6)
    assert delete(coordination, "orders", 0) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert delete(coordination, "prices", 0) == [ErrorCode.NONE]
    assert offsets(coordination) == {("orders", 0): 5}


def test_offsets_of_non_consumer_groups_are_deleted_only_if_empty(coordination: Coordination) -> None:
    member(coordination, type="connect")
    with pytest.raises(KafkaError) as refused:
        delete(coordination, "orders", 0)
    assert refused.value.code == ErrorCode.NON_EMPTY_GROUP


def test_offsets_are_removed_with_their_topic(coordination: Coordination) -> None:
    commit(coordination)
    commit(coordination, topic="prices")
    commit_in_transaction(coordination, 7, 5, partition=2)
    coordination.delete_topic("orders")
    coordination.pass_ms(1)
    end(coordination, 7, committed=True)
    assert offsets(coordination) == {("prices", 0): 1}


def test_many_offsets_of_a_deleted_topic_are_removed_in_batches(coordination: Coordination) -> None:
    for number in range(1500):
        commit(coordination, f"g{number}")
    coordination.delete_topic("orders")
    coordination.pass_ms(1)
    assert max(_sizes(coordination)) == 1000
    assert all(not offsets(coordination, f"g{number}") for number in range(1500))


def _sizes(coordination: Coordination) -> list[int]:
    starts = [base for base, _ in coordination.log.batches]
    ends = [*starts[1:], coordination.log.end_offset]
    return [last - first for first, last in zip(starts, ends, strict=True)]


def test_removal_batches_are_limited_by_the_length_of_names(
    coordination: Coordination,
) -> None:
    names = [f"{number}-{'n' * 30_000}" for number in range(80)]
    for name in names:
        commit(coordination, name, "orders")
        commit(coordination, name, "prices")
    coordination.delete_topic("orders")
    coordination.pass_ms(1)
    assert all(offsets(coordination, name) == {("prices", 0): 1} for name in names)
    coordination.pass_ms(11 * MINUTE)
    assert not list(coordination.shard.registry)
    assert max(len(data) for _, data in coordination.log.batches) < LogConfig().max_message_bytes


# Expiration.


def test_many_groups_are_checked_in_several_rounds(coordination: Coordination) -> None:
    for number in range(21_000):
        record = offset_record(f"g{number}", coordination.clock.time_ms())
        coordination.shard.replay((record,), number)
    coordination.take(coordination.shard._removal.expire)
    now = coordination.clock.time_ms()
    assert coordination.timers.deadlines["expire-offsets"][0] == now, "the others are next"
    coordination.pass_ms(0)
    assert coordination.timers.deadlines["expire-offsets"][0] == now + MINUTE, "all have been looked at"


def offset_record(group_id: str, now_ms: int) -> CoordinatorRecord:
    key = OffsetCommitKey(group=group_id, topic="orders", partition=0)
    return CoordinatorRecord(key, OffsetCommitValue(offset=1, commit_timestamp=now_ms), 4)


def test_offsets_without_members_expire_after_their_commit(coordination: Coordination) -> None:
    commit(coordination, partition=0)
    coordination.pass_ms(5 * MINUTE)
    commit(coordination, partition=1)
    coordination.pass_ms(5 * MINUTE)
    assert offsets(coordination) == {("orders", 1): 1}
    coordination.pass_ms(5 * MINUTE)
    assert offsets(coordination) == {}
    assert "g" not in coordination.shard.registry
    coordination.load()
    assert "g" not in coordination.shard.registry


def test_old_clients_may_set_a_retention_time(coordination: Coordination) -> None:
    commit(coordination, retention_time_ms=2 * MINUTE)
    coordination.pass_ms(MINUTE)
    assert offsets(coordination) == {("orders", 0): 1}
    coordination.pass_ms(MINUTE)
    assert offsets(coordination) == {}


def test_an_overflowing_retention_time_never_expires(coordination: Coordination) -> None:
    assert commit(coordination, retention_time_ms=2**63 - 1) == ErrorCode.NONE
    coordination.pass_ms(20 * MINUTE)
    assert offsets(coordination) == {("orders", 0): 1}


def test_offsets_of_a_group_expire_after_it_became_empty(coordination: Coordination) -> None:
    client = member(coordination, session=1_800_000)
    client.commit("orders", 0, 5)
    client.commit("prices", 0, 6)
    coordination.pass_ms(11 * MINUTE)
    # No member subscribes to prices, so its offset has expired.
    assert offsets(coordination) == {("orders", 0): 5}
    client.leave()
    coordination.pass_ms(9 * MINUTE)
    assert offsets(coordination) == {("orders", 0): 5}
    coordination.load()
    coordination.pass_ms(2 * MINUTE)
    assert offsets(coordination) == {}
    assert "g" not in coordination.shard.registry


def test_the_current_retention_config_applies(coordination: Coordination) -> None:
    commit(coordination)
    coordination.config = Coordination(SHORT | {"offsets.retention.minutes": "60"}).config
    coordination.pass_ms(30 * MINUTE)
    assert offsets(coordination) == {("orders", 0): 1}


def test_a_group_with_pending_offsets_is_kept(coordination: Coordination) -> None:
    commit_in_transaction(coordination, 7, 5)
    commit(coordination)
    coordination.pass_ms(30 * MINUTE)
    assert offsets(coordination) == {("orders", 0): 1}
    end(coordination, 7, committed=False)
    coordination.pass_ms(MINUTE)
    assert "g" not in coordination.shard.registry


# Records of old releases.


def test_legacy_offset_commit_records_are_loaded(coordination: Coordination) -> None:
    key = LegacyOffsetCommitKey(group="old", topic="orders", partition=0)
    value = LegacyOffsetCommitValue(offset=5, metadata="", commit_timestamp=1)
    coordination.shard.replay((CoordinatorRecord(key, value),), 0)
    assert offsets(coordination, "old") == {("orders", 0): 5}


def test_a_refused_append_changes_nothing(coordination: Coordination) -> None:
    commit(coordination, offset=1)
    coordination.log.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    request: OffsetCommitRequest = commit_request("g", "orders", 0, 9)
    assert refusal(coordination.ask(lambda shard: shard.commit_offsets(RAW, request))) == (
        ErrorCode.COORDINATOR_NOT_AVAILABLE
    )
    assert offsets(coordination) == {("orders", 0): 1}
