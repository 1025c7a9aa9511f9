"""Rounds against a broker with prepared answers: batches, old versions, and errors of single groups."""

from __future__ import annotations

import asyncio
from collections import Counter

from moldau.base.clock import ManualClock
from moldau.base.errors import ErrorCode
from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AsyncAdminClient
from moldau.lag.collection.collector import Collector
from moldau.lag.evaluation.observation import CommittedOffset, Round
from moldau.lag.filters import ALL_NAMES
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS
from moldau.protocol.messages import list_offsets, offset_fetch
from moldau.protocol.messages.api_versions import ApiVersionsResponse
from moldau.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from moldau.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.harness.wire.fake_broker import FakeBroker

PLACE = TopicPartition("orders", 0)


class LagBroker(FakeBroker):
    """A broker with groups that have committed offset 5 of a log of 8 records; `newest` limits versions."""

    def __init__(self, groups: int, newest: dict[int, int] | None = None) -> None:
        super().__init__(
            {
                ApiKey.METADATA: self._topics,
                ApiKey.LIST_GROUPS: self._list,
                ApiKey.DESCRIBE_GROUPS: self._describe,
                ApiKey.OFFSET_FETCH: self._committed,
                ApiKey.LIST_OFFSETS: self._offsets,
            }
        )
        self.groups = [f"g{number}" for number in range(groups)]
        self.group_errors: dict[str, ErrorCode] = {}
        self.topic_error = self.partition_error = ErrorCode.NONE
        self._newest = newest or {}

    def _versions(self) -> ApiVersionsResponse:
        response = super()._versions()
        for each in response.api_keys:
            each.max_version = min(each.max_version, self._newest.get(each.api_key, each.max_version))
        return response

    def _topics(self, request: MetadataRequest) -> MetadataResponse:
        partition = MetadataResponsePartition(partition_index=0, leader_id=1)
        topics = [
            MetadataResponseTopic(name=each.name, error_code=self.topic_error, partitions=[partition])
            for each in request.topics or []
        ]
        return self.metadata(topics=topics)

    def _list(self, request: ListGroupsRequest) -> ListGroupsResponse:
        listed = [
            ListedGroup(group_id=each, protocol_type="consumer", group_state="Stable", group_type="classic")
            for each in self.groups
        ]
        listed.append(ListedGroup(group_id="workers", protocol_type="connect", group_state="Stable"))
        return ListGroupsResponse(groups=listed)

    def _describe(self, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        member = DescribedGroupMember(member_id="m", client_id="c", client_host="/h")
        return DescribeGroupsResponse(
            groups=[
                DescribedGroup(
                    group_id=each, group_state="Stable", protocol_type="consumer", members=[member]
                )
                for each in request.groups
            ]
        )

    def _committed(self, request: offset_fetch.OffsetFetchRequest) -> offset_fetch.OffsetFetchResponse:
        if request.group_id:
            partition = offset_fetch.OffsetFetchResponsePartition(partition_index=0, committed_offset=5)
            topic = offset_fetch.OffsetFetchResponseTopic(name="orders", partitions=[partition])
            return offset_fetch.OffsetFetchResponse(
                topics=[topic], error_code=self.group_errors.get(request.group_id, ErrorCode.NONE)
            )
        committed = offset_fetch.OffsetFetchResponsePartitions(partition_index=0, committed_offset=5)
        topics = [offset_fetch.OffsetFetchResponseTopics(name="orders", partitions=[committed])]
        return offset_fetch.OffsetFetchResponse(
            groups=[
                offset_fetch.OffsetFetchResponseGroup(
                    group_id=each.group_id,
                    topics=topics,
                    error_code=self.group_errors.get(each.group_id, ErrorCode.NONE),
                )
                for each in request.groups
            ]
        )

    def _offsets(self, request: list_offsets.ListOffsetsRequest) -> list_offsets.ListOffsetsResponse:
        topic = list_offsets.ListOffsetsTopicResponse(
            name="orders",
            partitions=[
                list_offsets.ListOffsetsPartitionResponse(
                    partition_index=0, error_code=self.partition_error, offset=8
                )
            ],
        )
        return list_offsets.ListOffsetsResponse(topics=[topic])

    def round(self) -> Round:
        async def collect() -> Round:
            async with AsyncAdminClient(self.bootstrap) as client:
                return await Collector(client.cluster, ManualClock(), ALL_NAMES, ALL_NAMES).collect()

        return asyncio.run(collect())

    def counted(self) -> Counter[str]:
        return Counter(APIS[each.API_KEY].name for each in self.requests)


def test_requests_of_a_round_carry_a_hundred_groups() -> None:
    with LagBroker(250) as broker:
        found = broker.round()
        assert len(found.groups) == 250
        assert found.end_offsets == {PLACE: 8}
        assert all(each.committed == {PLACE: CommittedOffset(5)} for each in found.groups.values())
        sent = broker.counted()
    assert (sent["ListGroups"], sent["OffsetFetch"], sent["DescribeGroups"]) == (1, 3, 3)


def test_a_broker_before_kafka_3_is_asked_for_one_group_at_a_time() -> None:
    with LagBroker(3, {ApiKey.OFFSET_FETCH: 7, ApiKey.LIST_GROUPS: 2, ApiKey.METADATA: 9}) as broker:
        broker.group_errors["g1"] = ErrorCode.GROUP_AUTHORIZATION_FAILED
        found = broker.round()
        assert broker.counted()["OffsetFetch"] == 3
    assert found.groups["g0"].committed == {PLACE: CommittedOffset(5)}
    assert found.groups["g1"].committed is None
    assert (found.groups["g0"].type, found.groups["g0"].state) == ("classic", "Stable")


def test_an_error_concerns_only_its_group() -> None:
    with LagBroker(3) as broker:
        broker.group_errors = {
            "g0": ErrorCode.GROUP_AUTHORIZATION_FAILED,
            "g1": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        }
        found = broker.round()
    assert found.groups["g0"].committed is None and "not authorized" in (found.groups["g0"].error or "")
    assert found.groups["g1"].committed is None and found.groups["g1"].error
    assert found.groups["g2"].committed == {PLACE: CommittedOffset(5)} and not found.groups["g2"].error


def test_groups_of_other_protocols_are_left_out() -> None:
    with LagBroker(1) as broker:
        assert list(broker.round().groups) == ["g0"]


def test_a_missing_topic_is_deleted_and_a_moved_partition_is_unavailable() -> None:
    with LagBroker(1) as broker:
        broker.partition_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        moved = broker.round()
        broker.topic_error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        deleted = broker.round()
    assert moved.end_offsets == {} and moved.deleted_topics == frozenset()
    assert deleted.deleted_topics == {"orders"}
