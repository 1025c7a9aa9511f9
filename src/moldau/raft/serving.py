"""How a leader serves its log: what a replica asks for says how far it is, and whether its log is ours."""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from moldau.protocol.messages import fetch_snapshot as snapshot_api
from moldau.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from moldau.raft.answering import check_leader_request, leader_endpoint
from moldau.raft.core import Core
from moldau.raft.leader import UNKNOWN, Leader
from moldau.raft.types import FetchAnswer, LogView, OffsetAndEpoch, ReplicaKey
from moldau.raft.voter_changes import VoterChanges

#: Formatting writes this one; it is not of the log.
_BOOTSTRAP_SNAPSHOT = OffsetAndEpoch(0, 0)
_FIRST_VERSION_WITH_IDS = 13
#: From here on a response tells where the leader is.
_FIRST_VERSION_WITH_ENDPOINTS = 17


class Serving:
    def __init__(self, core: Core, changes: VoterChanges) -> None:
        self._core = core
        self._changes = changes

    # Records.

    def fetch(self, request: FetchRequest, version: int, now_ms: float) -> FetchAnswer:
        if request.cluster_id not in (None, self._core.settings.cluster_id):
            return FetchAnswer(FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
        partition = _metadata_partition(request, version)
        if partition is None:
            return FetchAnswer(FetchResponse(error_code=ErrorCode.INVALID_REQUEST))
        answer = PartitionData(partition_index=0, high_watermark=UNKNOWN, log_start_offset=0, records=b"")
        read_from = self._fetch(request, version, partition, answer, now_ms)
        # Last, because a fetch may commit something, and a leader that is removed with it resigns.
        answer.log_start_offset = self._core.log.start_offset
        answer.current_leader = LeaderIdAndEpoch(
            leader_id=self._core.leader_id, leader_epoch=self._core.epoch
        )
        is_new = read_from is None or read_from < self._core.log.end.offset
        is_new = is_new or partition.high_watermark < answer.high_watermark
        return FetchAnswer(
            self._response(answer, version), read_from, wait=not is_new and request.max_wait_ms > 0
        )

    def _fetch(
        self,
        request: FetchRequest,
        version: int,
        partition: FetchPartition,
        answer: PartitionData,
        now_ms: float,
    ) -> int | None:
        """Fill in what is wrong, or give the offset to read from."""
        error = self._check(request, partition)
        state = self._core.state
        key = ReplicaKey(_replica_id(request, version), partition.replica_directory_id)
        if error is ErrorCode.NONE and key.id == self._core.local.id:
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        answer.error_code = error
        if error is not ErrorCode.NONE or not isinstance(state, Leader):
            return None
        asked = OffsetAndEpoch(partition.fetch_offset, partition.last_fetched_epoch)
        read_from = None
        if (snapshot := _snapshot_instead(self._core.log, asked)) is not None:
            answer.snapshot_id = SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch)
        elif (end := _divergence(self._core.log, asked)) is not None:
            answer.diverging_epoch = EpochEndOffset(epoch=end.epoch, end_offset=end.offset)
        else:
            read_from = asked.offset
            if state.fetched(key, asked.offset, now_ms):
                self._changes.committed(state)
        answer.high_watermark = state.high_watermark
        return read_from

    def _check(self, request: FetchRequest, partition: FetchPartition) -> ErrorCode:
        if (
            request.max_wait_ms < 0
            or partition.fetch_offset < 0
            or not 0 <= partition.last_fetched_epoch <= partition.current_leader_epoch
        ):
            return ErrorCode.INVALID_REQUEST
        return check_leader_request(self._core, partition.current_leader_epoch)

    def _response(self, answer: PartitionData, version: int) -> FetchResponse:
        topic = FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[answer])
        response = FetchResponse(responses=[topic])
        if version >= _FIRST_VERSION_WITH_ENDPOINTS:
            response.node_endpoints = [
                NodeEndpoint(node_id=self._core.leader_id, host=endpoint.host, port=endpoint.port)
                for endpoint in leader_endpoint(self._core)
            ]
        return response

    # Snapshots.

    def fetch_snapshot(
        self, request: snapshot_api.FetchSnapshotRequest, version: int, now_ms: float
    ) -> tuple[snapshot_api.FetchSnapshotResponse, bool]:
        if request.cluster_id not in (None, self._core.settings.cluster_id):
            error = ErrorCode.INCONSISTENT_CLUSTER_ID
            return snapshot_api.FetchSnapshotResponse(error_code=error), False
        if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
            error = ErrorCode.INVALID_REQUEST
            return snapshot_api.FetchSnapshotResponse(error_code=error), False
        topic, asked = request.topics[0], request.topics[0].partitions[0]
        answer = snapshot_api.ResponsePartitionSnapshot(index=asked.partition, unaligned_records=b"")
        if (topic.name, asked.partition) != (METADATA_TOPIC, 0):
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            answer.error_code = self._fetch_snapshot(request.replica_id, asked, answer, now_ms)
        response = snapshot_api.FetchSnapshotResponse(
            topics=[snapshot_api.ResponseTopicSnapshot(name=topic.name, partitions=[answer])]
        )
        if version >= 1:
            response.node_endpoints = [
                snapshot_api.NodeEndpoint(
                    node_id=self._core.leader_id, host=endpoint.host, port=endpoint.port
                )
                for endpoint in leader_endpoint(self._core)
            ]
        return response, answer.error_code == ErrorCode.NONE

    def _fetch_snapshot(
        self,
        replica_id: int,
        asked: snapshot_api.RequestPartitionSnapshot,
        answer: snapshot_api.ResponsePartitionSnapshot,
        now_ms: float,
    ) -> ErrorCode:
        core, state = self._core, self._core.state
        answer.current_leader = snapshot_api.LeaderIdAndEpoch(
            leader_id=core.leader_id, leader_epoch=core.epoch
        )
        error = check_leader_request(core, asked.current_leader_epoch)
        if error is not ErrorCode.NONE or not isinstance(state, Leader):
            return error
        snapshot = OffsetAndEpoch(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        if snapshot == _BOOTSTRAP_SNAPSHOT or snapshot not in core.log.snapshots:
            return ErrorCode.SNAPSHOT_NOT_FOUND
        if asked.position < 0:
            return ErrorCode.POSITION_OUT_OF_RANGE
        answer.snapshot_id = snapshot_api.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch)
        answer.position = asked.position
        if replica_id >= 0:
            state.heard_from(ReplicaKey(replica_id, asked.replica_directory_id), now_ms)
        return ErrorCode.NONE


def _metadata_partition(request: FetchRequest, version: int) -> FetchPartition | None:
    """Named by its id: older versions cannot tell a leader, and who follows this log does not use them."""
    if version < _FIRST_VERSION_WITH_IDS:
        return None
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    topic = request.topics[0]
    is_metadata = topic.topic_id == METADATA_TOPIC_ID and topic.partitions[0].partition == 0
    return topic.partitions[0] if is_metadata else None


def _replica_id(request: FetchRequest, version: int) -> int:
    return request.replica_state.replica_id if version >= 15 else request.replica_id


def _snapshot_instead(log: LogView, asked: OffsetAndEpoch) -> OffsetAndEpoch | None:
    """The snapshot to fetch, when the log does not reach back, or when there is nothing to go on from."""
    snapshots = [snapshot for snapshot in log.snapshots if snapshot.offset >= log.start_offset]
    if not snapshots:
        return None
    earliest, latest = snapshots[0], snapshots[-1]
    if asked.offset == 0 and latest == _BOOTSTRAP_SNAPSHOT:
        return None
    if asked.offset == 0 or asked.offset < log.start_offset or asked.epoch < earliest.epoch:
        return latest
    return latest if asked.offset == log.start_offset and asked.epoch != earliest.epoch else None


def _divergence(log: LogView, asked: OffsetAndEpoch) -> OffsetAndEpoch | None:
    """Where our log ends in the largest epoch that is not above theirs, unless theirs is a part of ours."""
    if asked.offset == 0 and log.start_offset == 0:
        return None
    end = log.end_of_epoch(asked.epoch)
    return end if end.epoch != asked.epoch or end.offset < asked.offset else None
