"""WriteShareGroupState (API key 85): versions 0 to 1, flexible from 0."""

from __future__ import annotations

from moldau.base.ids import Uuid
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message, Struct, array, int8, int16, int32, int64, string, uuid


class StateBatch(Struct):
    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_state: int = int8("0+")
    delivery_count: int = int16("0+")


class PartitionData(Struct):
    partition: int = int32("0+")
    state_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = array(StateBatch, "0+")


class WriteStateData(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[PartitionData] = array(PartitionData, "0+")


class WriteShareGroupStateRequest(
    Message, api_key=ApiKey.WRITE_SHARE_GROUP_STATE, versions="0-1", flexible="0+"
):
    group_id: str = string("0+")
    topics: list[WriteStateData] = array(WriteStateData, "0+")


class PartitionResult(Struct):
    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", default=None, nullable="0+")


class WriteStateResult(Struct):
    topic_id: Uuid = uuid("0+")
    partitions: list[PartitionResult] = array(PartitionResult, "0+")


class WriteShareGroupStateResponse(
    Message, api_key=ApiKey.WRITE_SHARE_GROUP_STATE, versions="0-1", flexible="0+"
):
    results: list[WriteStateResult] = array(WriteStateResult, "0+")
