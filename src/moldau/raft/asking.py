"""The requests a node of the quorum sends, with the fields Kafka fills in."""

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
from moldau.raft.core import Core
from moldau.raft.states import Follower, Resigned
from moldau.raft.types import OffsetAndEpoch, ReplicaKey
from moldau.raft.voters import Voter

#: How long a leader may hold a fetch for which there is nothing new.
FETCH_MAX_WAIT_MS = 500


def vote_request(core: Core, voter: Voter, *, pre_vote: bool) -> vote.VoteRequest:
    end = core.log.end
    partition = vote.RequestPartitionData(
        partition_index=0,
        replica_epoch=core.epoch,
        replica_id=core.local.id,
        replica_directory_id=core.local.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=end.epoch,
        last_offset=end.offset,
        pre_vote=pre_vote,
    )
    topic = vote.RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return vote.VoteRequest(cluster_id=core.settings.cluster_id, voter_id=voter.id, topics=[topic])


def begin_quorum_epoch_request(core: Core, voter: ReplicaKey) -> begin_quorum_epoch.BeginQuorumEpochRequest:
    partition = begin_quorum_epoch.RequestPartitionData(
        partition_index=0,
        voter_directory_id=voter.directory_id,
        leader_id=core.local.id,
        leader_epoch=core.epoch,
    )
    return begin_quorum_epoch.BeginQuorumEpochRequest(
        cluster_id=core.settings.cluster_id,
        voter_id=voter.id,
        topics=[begin_quorum_epoch.RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[
            begin_quorum_epoch.LeaderEndpoint(name=endpoint.name, host=endpoint.host, port=endpoint.port)
            for endpoint in core.settings.endpoints
        ],
    )


def end_quorum_epoch_request(core: Core, state: Resigned) -> end_quorum_epoch.EndQuorumEpochRequest:
    partition = end_quorum_epoch.RequestPartitionData(
        partition_index=0,
        leader_id=core.local.id,
        leader_epoch=core.epoch,
        preferred_successors=[successor.id for successor in state.successors],
        preferred_candidates=[
            end_quorum_epoch.ReplicaInfo(
                candidate_id=successor.id, candidate_directory_id=successor.directory_id
            )
            for successor in state.successors
        ],
    )
    return end_quorum_epoch.EndQuorumEpochRequest(
        cluster_id=core.settings.cluster_id,
        topics=[end_quorum_epoch.RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
    )


def fetch_request(core: Core) -> fetch.FetchRequest:
    """The offset says what this node has on disk: everything before it may count as committed."""
    end = core.log.end
    partition = fetch.FetchPartition(
        partition=0,
        current_leader_epoch=core.epoch,
        fetch_offset=end.offset,
        last_fetched_epoch=end.epoch,
        replica_directory_id=core.local.directory_id,
        high_watermark=core.high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=core.settings.cluster_id,
        replica_state=fetch.ReplicaState(replica_id=core.local.id),
        max_wait_ms=_max_wait_ms(core),
        max_bytes=core.settings.fetch_max_bytes,
        topics=[fetch.FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def _max_wait_ms(core: Core) -> int:
    """Whether a leader that is taken for lost is there after all must be known at once."""
    return min(FETCH_MAX_WAIT_MS, core.settings.fetch_timeout_ms // 2) if core.lost is None else 0


def fetch_snapshot_request(
    core: Core, snapshot: OffsetAndEpoch, state: Follower
) -> fetch_snapshot.FetchSnapshotRequest:
    partition = fetch_snapshot.RequestPartitionSnapshot(
        partition=0,
        current_leader_epoch=core.epoch,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        position=state.position,
        replica_directory_id=core.local.directory_id,
    )
    return fetch_snapshot.FetchSnapshotRequest(
        cluster_id=core.settings.cluster_id,
        replica_id=core.local.id,
        max_bytes=core.settings.fetch_snapshot_max_bytes,
        topics=[fetch_snapshot.RequestTopicSnapshot(name=METADATA_TOPIC, partitions=[partition])],
    )


def update_voter_request(core: Core) -> update_raft_voter.UpdateRaftVoterRequest:
    local = core.settings.local_voter
    return update_raft_voter.UpdateRaftVoterRequest(
        cluster_id=core.settings.cluster_id,
        current_leader_epoch=core.epoch,
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


def add_voter_request(core: Core) -> add_raft_voter.AddRaftVoterRequest:
    """A node that adds itself does not wait for the commit: it must fetch for that."""
    return add_raft_voter.AddRaftVoterRequest(
        cluster_id=core.settings.cluster_id,
        timeout_ms=core.settings.request_timeout_ms,
        voter_id=core.local.id,
        voter_directory_id=core.local.directory_id,
        listeners=[
            add_raft_voter.Listener(name=endpoint.name, host=endpoint.host, port=endpoint.port)
            for endpoint in core.settings.endpoints
        ],
        ack_when_committed=False,
    )


def remove_voter_request(core: Core, voter: Voter) -> remove_raft_voter.RemoveRaftVoterRequest:
    return remove_raft_voter.RemoveRaftVoterRequest(
        cluster_id=core.settings.cluster_id,
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
    )
