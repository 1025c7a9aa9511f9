"""Rounds against a broker with prepared answers: batches, old versions, and errors of single groups."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from moldau.base.clock import ManualClock
from moldau.base.errors import ErrorCode
from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AsyncAdminClient
from moldau.lag.collection.collector import Collector
from moldau.lag.evaluation.observation import CommittedOffset, Round
from moldau.lag.filters import ALL_NAMES, NameFilter
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS
from tests.harness.lag.broker import LagBroker

PLACE = TopicPartition("orders", 0)


def collect(broker: LagBroker, topics: NameFilter = ALL_NAMES) -> Round:
    async def run() -> Round:
        async with AsyncAdminClient(broker.bootstrap) as client:
            return await Collector(client.cluster, ManualClock(), ALL_NAMES, topics).collect()

    return asyncio.run(run())


def counted(broker: LagBroker) -> Counter[str]:
    return Counter(APIS[each.API_KEY].name for each in broker.requests)


def test_requests_of_a_round_carry_a_hundred_groups() -> None:
    with LagBroker(250) as broker:
        found = collect(broker)
        assert len(found.groups) == 250
        assert found.end_offsets == {PLACE: 8}
        assert all(each.committed == {PLACE: CommittedOffset(5)} for each in found.groups.values())
        sent = counted(broker)
    assert (sent["ListGroups"], sent["OffsetFetch"], sent["DescribeGroups"]) == (1, 3, 3)


def test_a_broker_before_kafka_3_is_asked_for_one_group_at_a_time() -> None:
    with LagBroker(3, {ApiKey.OFFSET_FETCH: 7, ApiKey.LIST_GROUPS: 2, ApiKey.METADATA: 9}) as broker:
        broker.group_errors["g1"] = ErrorCode.GROUP_AUTHORIZATION_FAILED
        found = collect(broker)
        assert counted(broker)["OffsetFetch"] == 3
    assert found.groups["g0"].committed == {PLACE: CommittedOffset(5)}
    assert found.groups["g1"].committed is None
    assert (found.groups["g0"].type, found.groups["g0"].state) == ("classic", "Stable")


def test_an_error_concerns_only_its_group() -> None:
    with LagBroker(3) as broker:
        broker.group_errors = {
            "g0": ErrorCode.GROUP_AUTHORIZATION_FAILED,
            "g1": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        }
        found = collect(broker)
    assert found.groups["g0"].committed is None and "not authorized" in (found.groups["g0"].error or "")
    assert found.groups["g1"].committed is None and found.groups["g1"].error
    assert found.groups["g2"].committed == {PLACE: CommittedOffset(5)} and not found.groups["g2"].error


def test_groups_of_other_protocols_are_left_out() -> None:
    with LagBroker(1) as broker:
        assert list(collect(broker).groups) == ["g0"]


def test_a_missing_topic_is_reported_and_a_moved_partition_is_unavailable() -> None:
    with LagBroker(1) as broker:
        broker.partition_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        moved = collect(broker)
        broker.topic_error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        missing = collect(broker)
    assert moved.end_offsets == {} and moved.missing_topics == frozenset()
    assert missing.missing_topics == {"orders"}


def test_a_topic_filter_concerns_the_partitions_of_members_too() -> None:
    with LagBroker(1) as broker:
        broker.assigned = {"orders": [0], "bills": [0, 1]}
        chosen = collect(broker, NameFilter(["orders"])).groups["g0"]
        left_out = collect(broker, NameFilter(exclude=["orders", "bills"]))
    assert chosen.members is not None
    assert [each.partitions for each in chosen.members] == [frozenset({PLACE})]
    # A group that reads only other topics is not observed.
    assert left_out.groups == {}


def test_the_end_offsets_of_all_partitions_of_a_topic_are_read() -> None:
    """Also of those that no group reads: Burrow's API lists them by index."""
    with LagBroker(1) as broker:
        broker.partitions = 3
        found = collect(broker)
    assert found.end_offsets == {TopicPartition("orders", index): 8 for index in range(3)}
    assert found.partition_counts == {"orders": 3}


@pytest.mark.parametrize("newest", [9, 7])
def test_an_offset_that_cannot_be_read_is_not_a_deleted_offset(newest: int) -> None:
    with LagBroker(1, {ApiKey.OFFSET_FETCH: newest}) as broker:
        broker.offset_error = ErrorCode.UNSTABLE_OFFSET_COMMIT
        found = collect(broker).groups["g0"]
    assert (found.committed, found.unread) == ({}, {PLACE})
