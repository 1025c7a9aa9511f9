"""ConsumerGroupHeartbeat (API key 68): versions 0 to 1, flexible from 0."""

from __future__ import annotations

from moldau.base.ids import Uuid
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message, Struct, array, int16, int32, string, struct, uuid


class TopicPartitions(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[int] = array(int32, "0+")


class ConsumerGroupHeartbeatRequest(
    Message, api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+"
):
    group_id: str = string("0+")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    instance_id: str | None = string("0+", default=None, nullable="0+")
    rack_id: str | None = string("0+", default=None, nullable="0+")
    rebalance_timeout_ms: int = int32("0+", default=-1)
    subscribed_topic_names: list[str] | None = array(string, "0+", default=None, nullable="0+")
    subscribed_topic_regex: str | None = string("1+", default=None, nullable="1+")
    server_assignor: str | None = string("0+", default=None, nullable="0+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, "0+", default=None, nullable="0+")


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions, "0+")


class ConsumerGroupHeartbeatResponse(
    Message, api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+"
):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", default=None, nullable="0+")
    member_id: str | None = string("0+", default=None, nullable="0+")
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    assignment: Assignment | None = struct(Assignment, "0+", default=None, nullable="0+")
