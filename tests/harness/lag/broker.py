"""A broker with prepared answers to the requests of a lag monitor."""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.protocol.api_keys import ApiKey
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
from moldau.protocol.schema import encode_bytes
from moldau.protocol.stored.consumer_protocol import AssignmentTopicPartition, ConsumerProtocolAssignment
from tests.harness.wire.fake_broker import FakeBroker


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
        self.topic_error = self.partition_error = self.listing_error = ErrorCode.NONE
        #: The error of the committed offset.
        self.offset_error = ErrorCode.NONE
        #: The number of partitions of every topic, and what the member of every group is assigned.
        self.partitions = 1
        self.assigned: dict[str, list[int]] = {}
        self._newest = newest or {}

    def _versions(self) -> ApiVersionsResponse:
        response = super()._versions()
        for each in response.api_keys:
            each.max_version = min(each.max_version, self._newest.get(each.api_key, each.max_version))
        return response

    def _topics(self, request: MetadataRequest) -> MetadataResponse:
        partitions = [
            MetadataResponsePartition(partition_index=index, leader_id=1) for index in range(self.partitions)
        ]
        topics = [
            MetadataResponseTopic(name=each.name, error_code=self.topic_error, partitions=partitions)
            for each in request.topics or []
        ]
        return self.metadata(topics=topics)

    def _list(self, request: ListGroupsRequest) -> ListGroupsResponse:
        listed = [
            ListedGroup(group_id=each, protocol_type="consumer", group_state="Stable", group_type="classic")
            for each in self.groups
        ]
        listed.append(ListedGroup(group_id="workers", protocol_type="connect", group_state="Stable"))
        return ListGroupsResponse(groups=listed, error_code=self.listing_error)

    def _describe(self, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        assigned = [
            AssignmentTopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in self.assigned.items()
        ]
        assignment = encode_bytes(ConsumerProtocolAssignment(assigned_partitions=assigned), 0)
        member = DescribedGroupMember(
            member_id="m", client_id="c", client_host="/h", member_assignment=bytes(2) + assignment
        )
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
            partition = offset_fetch.OffsetFetchResponsePartition(
                partition_index=0, committed_offset=5, error_code=self.offset_error
            )
            topic = offset_fetch.OffsetFetchResponseTopic(name="orders", partitions=[partition])
            return offset_fetch.OffsetFetchResponse(
                topics=[topic], error_code=self.group_errors.get(request.group_id, ErrorCode.NONE)
            )
        committed = offset_fetch.OffsetFetchResponsePartitions(
            partition_index=0, committed_offset=5, error_code=self.offset_error
        )
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
        topics = [
            list_offsets.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    list_offsets.ListOffsetsPartitionResponse(
                        partition_index=each.partition_index, error_code=self.partition_error, offset=8
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return list_offsets.ListOffsetsResponse(topics=topics)
