"""Builders of the requests that a quorum member sends, with the fields that Kafka sets."""

from __future__ import annotations

from moldau.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from moldau.protocol.messages import (
    add_raft_voter,
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from moldau.raft.quorum_state import QuorumState
from moldau.raft.states import Follower, Resigned
from moldau.raft.types import OffsetAndEpoch, ReplicaKey
from moldau.raft.voters import Voter

#: The max_wait_ms of a fetch.
FETCH_MAX_WAIT_MS = 500


def vote_request(quorum: QuorumState, voter: Voter, *, pre_vote: bool) -> vote.VoteRequest:
    end = quorum.log.view.end
    partition = vote.RequestPartitionData(
        partition_index=0,
        replica_epoch=quorum.epoch,
        replica_id=quorum.local.id,
        replica_directory_id=quorum.local.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=end.epoch,
        last_offset=end.offset,
        pre_vote=pre_vote,
    )
    topic = vote.RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return vote.VoteRequest(cluster_id=quorum.settings.cluster_id, voter_id=voter.id, topics=[topic])


def begin_quorum_epoch_request(
    quorum: QuorumState, voter: ReplicaKey
) -> begin_quorum_epoch.BeginQuorumEpochRequest:
    partition = begin_quorum_epoch.RequestPartitionData(
        partition_index=0,
        voter_directory_id=voter.directory_id,
        leader_id=quorum.local.id,
        leader_epoch=quorum.epoch,
    )
    return begin_quorum_epoch.BeginQuorumEpochRequest(
        cluster_id=quorum.settings.cluster_id,
        voter_id=voter.id,
        topics=[begin_quorum_epoch.RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[
            begin_quorum_epoch.LeaderEndpoint(name=endpoint.name, host=endpoint.host, port=endpoint.port)
            for endpoint in quorum.settings.endpoints
        ],
    )


def end_quorum_epoch_request(quorum: QuorumState, state: Resigned) -> end_quorum_epoch.EndQuorumEpochRequest:
    partition = end_quorum_epoch.RequestPartitionData(
        partition_index=0,
        leader_id=quorum.local.id,
        leader_epoch=quorum.epoch,
        preferred_successors=[successor.id for successor in state.successors],
        preferred_candidates=[
            end_quorum_epoch.ReplicaInfo(
                candidate_id=successor.id, candidate_directory_id=successor.directory_id
            )
            for successor in state.successors
        ],
    )
    return end_quorum_epoch.EndQuorumEpochRequest(
        cluster_id=quorum.settings.cluster_id,
        topics=[end_quorum_epoch.RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
    )


def fetch_request(quorum: QuorumState) -> fetch.FetchRequest:
    """Build a Fetch from the log end offset; the leader counts every record before it as durable here."""
    end = quorum.log.view.end
    partition = fetch.FetchPartition(
        partition=0,
        current_leader_epoch=quorum.epoch,
        fetch_offset=end.offset,
        last_fetched_epoch=end.epoch,
        replica_directory_id=quorum.local.directory_id,
        high_watermark=quorum.log.high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=quorum.settings.cluster_id,
        replica_state=fetch.ReplicaState(replica_id=quorum.local.id),
        max_wait_ms=_max_wait_ms(quorum),
        max_bytes=quorum.settings.fetch_max_bytes,
        topics=[fetch.FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def _max_wait_ms(quorum: QuorumState) -> int:
    """A leader believed to be unavailable is asked to respond at once, to find out whether it is."""
    if quorum.unavailable_leader is not None:
        return 0
    return min(FETCH_MAX_WAIT_MS, quorum.settings.fetch_timeout_ms // 2)


def fetch_snapshot_request(
    quorum: QuorumState, snapshot: OffsetAndEpoch, state: Follower
) -> fetch_snapshot.FetchSnapshotRequest:
    partition = fetch_snapshot.RequestPartitionSnapshot(
        partition=0,
        current_leader_epoch=quorum.epoch,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        position=state.position,
        replica_directory_id=quorum.local.directory_id,
    )
    return fetch_snapshot.FetchSnapshotRequest(
        cluster_id=quorum.settings.cluster_id,
        replica_id=quorum.local.id,
        max_bytes=quorum.settings.fetch_snapshot_max_bytes,
        topics=[fetch_snapshot.RequestTopicSnapshot(name=METADATA_TOPIC, partitions=[partition])],
    )


def update_voter_request(quorum: QuorumState) -> update_raft_voter.UpdateRaftVoterRequest:
    local = quorum.settings.local_voter
    return update_raft_voter.UpdateRaftVoterRequest(
        cluster_id=quorum.settings.cluster_id,
        current_leader_epoch=quorum.epoch,
        voter_id=local.id,
        voter_directory_id=local.directory_id,
        listeners=[
            update_raft_voter.Listener(name=endpoint.name, host=endpoint.host, port=endpoint.port)
            for endpoint in local.endpoints
        ],
        kraft_version_feature=update_raft_voter.KRaftVersionFeature(
            min_supported_version=local.min_kraft_version, max_supported_version=local.max_kraft_version
        ),
    )


def add_voter_request(quorum: QuorumState) -> add_raft_voter.AddRaftVoterRequest:
    """A node that adds itself must fetch to get the change committed, so it does not wait for the commit."""
    return add_raft_voter.AddRaftVoterRequest(
        cluster_id=quorum.settings.cluster_id,
        timeout_ms=quorum.settings.request_timeout_ms,
        voter_id=quorum.local.id,
        voter_directory_id=quorum.local.directory_id,
        listeners=[
            add_raft_voter.Listener(name=endpoint.name, host=endpoint.host, port=endpoint.port)
            for endpoint in quorum.settings.endpoints
        ],
        ack_when_committed=False,
    )


def remove_voter_request(quorum: QuorumState, voter: Voter) -> remove_raft_voter.RemoveRaftVoterRequest:
    return remove_raft_voter.RemoveRaftVoterRequest(
        cluster_id=quorum.settings.cluster_id,
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
    )
