"""Log replication: the leader serves Fetch and FetchSnapshot, followers act on the responses.

The offset and epoch of a Fetch tell the leader what is durable at the replica and whether its log diverges.
The response either carries records, or the point at which to truncate, or the snapshot to fetch instead
(KIP-595, KIP-630).
"""

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
from moldau.protocol.messages.fetch_snapshot import ResponsePartitionSnapshot
from moldau.protocol.schema import Buffer, Records
from moldau.raft.election import check_leader_epoch, known_leader_endpoints
from moldau.raft.local_log import LogView
from moldau.raft.membership import VoterChanges
from moldau.raft.quorum_state import QuorumState
from moldau.raft.states import Follower, Leader
from moldau.raft.types import (
    UNKNOWN_OFFSET,
    Append,
    FetchResult,
    FollowerAction,
    OffsetAndEpoch,
    QuorumView,
    RaftSafetyViolation,
    ReplicaKey,
    SnapshotChunk,
    Truncate,
)
from moldau.raft.voters import VoterSet

#: The snapshot written by `format`. It is not part of the log and is never served.
_BOOTSTRAP_SNAPSHOT = OffsetAndEpoch(0, 0)
#: The first Fetch version with topic ids (KIP-516).
_FIRST_VERSION_WITH_IDS = 13
#: The first Fetch version whose response has node endpoints (KIP-853).
_FIRST_VERSION_WITH_ENDPOINTS = 17


class LeaderReplication:
    """Serves the log and its snapshots, and advances the high watermark by what replicas fetch."""

    def __init__(self, quorum: QuorumState, changes: VoterChanges) -> None:
        self._quorum = quorum
        self._changes = changes

    def local_log_synced(self) -> None:
        """Count the leader's own durable records towards the high watermark."""
        state = self._quorum.leader
        if state is not None and state.update_local_end(self._quorum.log.durable_end):
            self._high_watermark_advanced(state)

    def _high_watermark_advanced(self, state: Leader) -> None:
        self._quorum.log.advance_high_watermark(state.high_watermark)
        self._changes.high_watermark_advanced()

    def describe(self, now_ms: float) -> QuorumView | None:
        """Return the progress of all replicas; None if this node is not the leader."""
        quorum, state = self._quorum, self._quorum.state
        if not isinstance(state, Leader):
            return None
        return QuorumView(
            quorum.local.id,
            quorum.epoch,
            state.high_watermark,
            state.voter_views(now_ms),
            state.observer_views(now_ms),
        )

    # Fetch.

    def fetch(self, request: FetchRequest, version: int, now_ms: float) -> FetchResult:
        if request.cluster_id not in (None, self._quorum.settings.cluster_id):
            return FetchResult(FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
        partition = _metadata_partition(request, version)
        if partition is None:
            return FetchResult(FetchResponse(error_code=ErrorCode.INVALID_REQUEST))
        result = PartitionData(
            partition_index=0, high_watermark=UNKNOWN_OFFSET, log_start_offset=0, records=b""
        )
        read_from = self._fetch(request, version, partition, result, now_ms)
        # Set last: the fetch may commit the leader's own removal, which makes it resign.
        result.log_start_offset = self._quorum.log.view.start_offset
        result.current_leader = LeaderIdAndEpoch(
            leader_id=self._quorum.leader_id, leader_epoch=self._quorum.epoch
        )
        is_new = read_from is None or read_from < self._quorum.log.view.end.offset
        is_new = is_new or partition.high_watermark < result.high_watermark
        return FetchResult(
            self._response(result, version), read_from, wait=not is_new and request.max_wait_ms > 0
        )

    def _fetch(
        self,
        request: FetchRequest,
        version: int,
        partition: FetchPartition,
        result: PartitionData,
        now_ms: float,
    ) -> int | None:
        """Fill in the error, snapshot or diverging epoch, or return the offset to read records from."""
        error = self._check(request, partition)
        state = self._quorum.state
        key = ReplicaKey(_replica_id(request, version), partition.replica_directory_id)
        if error is ErrorCode.NONE and key.id == self._quorum.local.id:
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        result.error_code = error
        if error is not ErrorCode.NONE or not isinstance(state, Leader):
            return None
        requested = OffsetAndEpoch(partition.fetch_offset, partition.last_fetched_epoch)
        read_from = None
        if (snapshot := _snapshot_to_fetch(self._quorum.log.view, requested)) is not None:
            result.snapshot_id = SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch)
        elif (end := _divergence(self._quorum.log.view, requested)) is not None:
            result.diverging_epoch = EpochEndOffset(epoch=end.epoch, end_offset=end.offset)
        else:
            read_from = requested.offset
            if state.record_fetch(key, requested.offset, now_ms):
                self._high_watermark_advanced(state)
        result.high_watermark = state.high_watermark
        return read_from

    def _check(self, request: FetchRequest, partition: FetchPartition) -> ErrorCode:
        if (
            request.max_wait_ms < 0
            or partition.fetch_offset < 0
            or not 0 <= partition.last_fetched_epoch <= partition.current_leader_epoch
        ):
            return ErrorCode.INVALID_REQUEST
        return check_leader_epoch(self._quorum, partition.current_leader_epoch)

    def _response(self, result: PartitionData, version: int) -> FetchResponse:
        topic = FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[result])
        response = FetchResponse(responses=[topic])
        if version >= _FIRST_VERSION_WITH_ENDPOINTS:
            response.node_endpoints = [
                NodeEndpoint(node_id=self._quorum.leader_id, host=endpoint.host, port=endpoint.port)
                for endpoint in known_leader_endpoints(self._quorum)
            ]
        return response

    # FetchSnapshot.

    def fetch_snapshot(
        self, request: snapshot_api.FetchSnapshotRequest, version: int, now_ms: float
    ) -> tuple[snapshot_api.FetchSnapshotResponse, bool]:
        if request.cluster_id not in (None, self._quorum.settings.cluster_id):
            error = ErrorCode.INCONSISTENT_CLUSTER_ID
            return snapshot_api.FetchSnapshotResponse(error_code=error), False
        if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
            error = ErrorCode.INVALID_REQUEST
            return snapshot_api.FetchSnapshotResponse(error_code=error), False
        topic, requested = request.topics[0], request.topics[0].partitions[0]
        result = ResponsePartitionSnapshot(index=requested.partition, unaligned_records=b"")
        if (topic.name, requested.partition) != (METADATA_TOPIC, 0):
            result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            result.error_code = self._fetch_snapshot(request.replica_id, requested, result, now_ms)
        response = snapshot_api.FetchSnapshotResponse(
            topics=[snapshot_api.ResponseTopicSnapshot(name=topic.name, partitions=[result])]
        )
        if version >= 1:
            response.node_endpoints = [
                snapshot_api.NodeEndpoint(
                    node_id=self._quorum.leader_id, host=endpoint.host, port=endpoint.port
                )
                for endpoint in known_leader_endpoints(self._quorum)
            ]
        return response, result.error_code == ErrorCode.NONE

    def _fetch_snapshot(
        self,
        replica_id: int,
        requested: snapshot_api.RequestPartitionSnapshot,
        result: ResponsePartitionSnapshot,
        now_ms: float,
    ) -> ErrorCode:
        quorum, state = self._quorum, self._quorum.state
        result.current_leader = snapshot_api.LeaderIdAndEpoch(
            leader_id=quorum.leader_id, leader_epoch=quorum.epoch
        )
        error = check_leader_epoch(quorum, requested.current_leader_epoch)
        if error is not ErrorCode.NONE or not isinstance(state, Leader):
            return error
        snapshot = OffsetAndEpoch(requested.snapshot_id.end_offset, requested.snapshot_id.epoch)
        if snapshot == _BOOTSTRAP_SNAPSHOT or snapshot not in quorum.log.view.snapshots:
            return ErrorCode.SNAPSHOT_NOT_FOUND
        if requested.position < 0:
            return ErrorCode.POSITION_OUT_OF_RANGE
        result.snapshot_id = snapshot_api.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch)
        result.position = requested.position
        if replica_id >= 0:
            state.record_contact(ReplicaKey(replica_id, requested.replica_directory_id), now_ms)
        return ErrorCode.NONE


class FollowerReplication:
    """Turns the leader's responses into actions for the driver, and follows their completion."""

    def __init__(self, quorum: QuorumState) -> None:
        self._quorum = quorum

    # Responses of the leader: whether they are valid, and the action that follows.

    def on_fetch(
        self, state: Follower, partition: PartitionData, now_ms: float
    ) -> tuple[bool, FollowerAction | None]:
        diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
        if diverging.epoch >= 0:
            end_offset = self._truncation_offset(OffsetAndEpoch(diverging.end_offset, diverging.epoch))
            self._quorum.log.has_pending_write = True
            self.record_contact(state, now_ms)
            return True, Truncate(end_offset)
        if snapshot.epoch >= 0 or snapshot.end_offset >= 0:
            if snapshot.epoch < 0 or snapshot.end_offset < 0:
                return False, None
            self._check_committed(snapshot.end_offset, f"the leader's snapshot ends at {snapshot.end_offset}")
            state.snapshot = OffsetAndEpoch(snapshot.end_offset, snapshot.epoch)
            state.position = 0
            self.record_contact(state, now_ms)
            return True, None
        self.record_contact(state, now_ms)
        state.leader_high_watermark = partition.high_watermark
        records = _as_buffer(partition.records)
        if not records:
            self._update_high_watermark(state)
            return True, None
        self._quorum.log.has_pending_write = True
        return True, Append(records, self._quorum.epoch)

    def _truncation_offset(self, diverging: OffsetAndEpoch) -> int:
        """Return where to truncate: the end of the diverging epoch in the shorter of both logs."""
        log = self._quorum.log.view
        if diverging.epoch == 0:
            end_offset = min(diverging.offset, log.end.offset)
        else:
            own = log.end_of_epoch(diverging.epoch)
            end_offset = min(own.offset, diverging.offset) if own.epoch == diverging.epoch else own.offset
        message = f"epoch {diverging.epoch} ends at offset {diverging.offset} in the leader's log"
        self._check_committed(min(end_offset, diverging.offset), message)
        return end_offset

    def _check_committed(self, end_offset: int, message: str) -> None:
        if end_offset < self._quorum.log.committed:
            raise RaftSafetyViolation(
                f"{message}, but every record before offset {self._quorum.log.committed} is committed here"
            )

    def on_fetch_snapshot(
        self, state: Follower, partition: ResponsePartitionSnapshot, now_ms: float
    ) -> tuple[bool, FollowerAction | None]:
        snapshot = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
        if partition.error_code == ErrorCode.SNAPSHOT_NOT_FOUND or min(snapshot) < 0:
            # A newer snapshot has replaced it; the next fetch names it.
            state.snapshot = None
            self.record_contact(state, now_ms)
            return True, None
        records = _as_buffer(partition.unaligned_records)
        is_next = (snapshot, partition.position) == (state.snapshot, state.position)
        if partition.error_code != ErrorCode.NONE or not is_next or not records:
            state.snapshot = None
            return False, None
        self._quorum.log.has_pending_write = True
        state.pending_bytes = len(records)
        self.record_contact(state, now_ms)
        is_last = state.position + len(records) >= partition.size
        return True, SnapshotChunk(snapshot, state.position, records, is_last)

    def record_contact(self, state: Follower, now_ms: float) -> None:
        state.deadline = now_ms + self._quorum.settings.fetch_timeout_ms
        state.has_fetched = True
        self._quorum.last_unavailable_leader = None

    # Completed actions. The role may have changed since the action was started.

    def action_completed(self, now_ms: float) -> Follower | None:
        """Extend the fetch deadline, because the time of a local write is no evidence about the leader."""
        quorum, state = self._quorum, self._quorum.state
        quorum.log.has_pending_write = False
        if not isinstance(state, Follower):
            return None
        if quorum.unavailable_leader is None:
            state.deadline = max(state.deadline, now_ms + quorum.settings.fetch_timeout_ms)
        return state

    def appended(self, now_ms: float) -> None:
        if not self._quorum.log.has_pending_write:
            return
        state = self.action_completed(now_ms)
        if state is not None:
            self._update_high_watermark(state)

    def snapshot_chunk_written(self, now_ms: float) -> None:
        state = self.action_completed(now_ms)
        if state is not None:
            state.position, state.pending_bytes = state.position + state.pending_bytes, 0

    def snapshot_rejected(self, now_ms: float) -> None:
        state = self.action_completed(now_ms)
        if state is not None:
            state.snapshot = None

    def snapshot_loaded(self, kraft_version: int, voters: VoterSet | None, now_ms: float) -> None:
        quorum = self._quorum
        quorum.history.clear()
        quorum.history.add(quorum.log.view.end.offset - 1, kraft_version=kraft_version, voters=voters)
        quorum.log.advance_high_watermark(quorum.log.view.end.offset)
        state = self.action_completed(now_ms)
        if state is not None:
            state.snapshot = None

    def _update_high_watermark(self, state: Follower) -> None:
        if state.leader_high_watermark >= 0:
            self._quorum.log.advance_high_watermark(
                min(state.leader_high_watermark, self._quorum.log.durable_end)
            )


def _metadata_partition(request: FetchRequest, version: int) -> FetchPartition | None:
    """Return the metadata partition, or None. It must be named by its topic id."""
    if version < _FIRST_VERSION_WITH_IDS:
        return None
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    topic = request.topics[0]
    is_metadata = topic.topic_id == METADATA_TOPIC_ID and topic.partitions[0].partition == 0
    return topic.partitions[0] if is_metadata else None


def _replica_id(request: FetchRequest, version: int) -> int:
    return request.replica_state.replica_id if version >= 15 else request.replica_id


def _snapshot_to_fetch(log: LogView, requested: OffsetAndEpoch) -> OffsetAndEpoch | None:
    """Return the snapshot to fetch, if the log does not reach back to the requested offset or epoch."""
    snapshots = [snapshot for snapshot in log.snapshots if snapshot.offset >= log.start_offset]
    if not snapshots:
        return None
    earliest, latest = snapshots[0], snapshots[-1]
    if requested.offset == 0 and latest == _BOOTSTRAP_SNAPSHOT:
        return None
    if requested.offset == 0 or requested.offset < log.start_offset or requested.epoch < earliest.epoch:
        return latest
    return latest if requested.offset == log.start_offset and requested.epoch != earliest.epoch else None


def _divergence(log: LogView, requested: OffsetAndEpoch) -> OffsetAndEpoch | None:
    """Return the end of the largest epoch not above the requested one, if the replica's log is not a prefix
    of ours (log matching, Raft §5.3)."""
    if requested.offset == 0 and log.start_offset == 0:
        return None
    end = log.end_of_epoch(requested.epoch)
    return end if end.epoch != requested.epoch or end.offset < requested.offset else None


def _as_buffer(records: Records | None) -> Buffer:
    if records is None:
        return b""
    return records if isinstance(records, bytes | bytearray | memoryview) else b"".join(records)
