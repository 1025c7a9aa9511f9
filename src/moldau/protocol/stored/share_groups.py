"""Records of `__consumer_offsets`: share groups."""

from __future__ import annotations

from moldau.base.ids import Uuid
from moldau.protocol.schema import Message, Struct, array, int8, int32, int64, string, uuid


class ShareGroupMemberMetadataKey(Message, api_key=10, versions="0"):
    group_id: str = string("0")
    member_id: str = string("0")


class ShareGroupMemberMetadataValue(Message, api_key=10, versions="0", flexible="0+"):
    rack_id: str | None = string("0+", nullable="0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array(string, "0+")


class ShareGroupMetadataKey(Message, api_key=11, versions="0"):
    group_id: str = string("0")


class ShareGroupMetadataValue(Message, api_key=11, versions="0", flexible="0+"):
    epoch: int = int32("0+")
    metadata_hash: int = int64("0+")


class ShareGroupTargetAssignmentMetadataKey(Message, api_key=12, versions="0"):
    group_id: str = string("0")


class ShareGroupTargetAssignmentMetadataValue(Message, api_key=12, versions="0", flexible="0+"):
    assignment_epoch: int = int32("0+")
    assignment_timestamp: int = int64("0+", tagged="0+", tag=0, ignorable=True)


class ShareGroupTargetAssignmentMemberKey(Message, api_key=13, versions="0"):
    group_id: str = string("0")
    member_id: str = string("0")


class TopicPartition(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array(int32, "0+")


class ShareGroupTargetAssignmentMemberValue(Message, api_key=13, versions="0", flexible="0+"):
    topic_partitions: list[TopicPartition] = array(TopicPartition, "0+")


class ShareGroupCurrentMemberAssignmentKey(Message, api_key=14, versions="0"):
    group_id: str = string("0")
    member_id: str = string("0")


class TopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array(int32, "0+")


class ShareGroupCurrentMemberAssignmentValue(Message, api_key=14, versions="0", flexible="0+"):
    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions, "0+")


class ShareGroupStatePartitionMetadataKey(Message, api_key=15, versions="0"):
    group_id: str = string("0")


class TopicPartitionsInfo(Struct):
    topic_id: Uuid = uuid("0+")
    topic_name: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class TopicInfo(Struct):
    topic_id: Uuid = uuid("0+")
    topic_name: str = string("0+")


class ShareGroupStatePartitionMetadataValue(Message, api_key=15, versions="0", flexible="0+"):
    initializing_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo, "0+")
    initialized_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo, "0+")
    deleting_topics: list[TopicInfo] = array(TopicInfo, "0+")
