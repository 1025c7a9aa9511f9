"""FetchSnapshot (API key 59): versions 0 to 1, flexible from 0."""

from __future__ import annotations

from moldau.base.ids import Uuid
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import (
    Message,
    Records,
    Struct,
    array,
    int16,
    int32,
    int64,
    records_,
    string,
    struct,
    uint16,
    uuid,
)


class SnapshotId(Struct):
    end_offset: int = int64("0+")
    epoch: int = int32("0+")


class RequestPartitionSnapshot(Struct):
    partition: int = int32("0+")
    current_leader_epoch: int = int32("0+")
    snapshot_id: SnapshotId = struct(SnapshotId, "0+")
    position: int = int64("0+")
    replica_directory_id: Uuid = uuid("1+", tagged="1+", tag=0, ignorable=True)


class RequestTopicSnapshot(Struct):
    name: str = string("0+")
    partitions: list[RequestPartitionSnapshot] = array(RequestPartitionSnapshot, "0+")


class FetchSnapshotRequest(Message, api_key=ApiKey.FETCH_SNAPSHOT, versions="0-1", flexible="0+"):
    cluster_id: str | None = string("0+", default=None, nullable="0+", tagged="0+", tag=0)
    replica_id: int = int32("0+", default=-1)
    max_bytes: int = int32("0+", default=0x7FFFFFFF)
    topics: list[RequestTopicSnapshot] = array(RequestTopicSnapshot, "0+")


class LeaderIdAndEpoch(Struct):
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


class ResponsePartitionSnapshot(Struct):
    index: int = int32("0+")
    error_code: int = int16("0+")
    snapshot_id: SnapshotId = struct(SnapshotId, "0+")
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "0+", tagged="0+", tag=0)
    size: int = int64("0+")
    position: int = int64("0+")
    unaligned_records: Records | None = records_("0+")


class ResponseTopicSnapshot(Struct):
    name: str = string("0+")
    partitions: list[ResponsePartitionSnapshot] = array(ResponsePartitionSnapshot, "0+")


class NodeEndpoint(Struct):
    node_id: int = int32("1+")
    host: str = string("1+")
    port: int = uint16("1+")


class FetchSnapshotResponse(Message, api_key=ApiKey.FETCH_SNAPSHOT, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+")
    topics: list[ResponseTopicSnapshot] = array(ResponseTopicSnapshot, "0+")
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tagged="1+", tag=0)
