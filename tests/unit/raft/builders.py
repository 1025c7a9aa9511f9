"""A single node of a quorum of three, and messages to it."""

from __future__ import annotations

import random
from dataclasses import replace

from moldau.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID, Uuid
from moldau.protocol.messages import begin_quorum_epoch, end_quorum_epoch, fetch, vote
from moldau.raft.raft import Raft
from moldau.raft.types import ElectionState, OutboundRequest
from moldau.raft.voters import VoterHistory
from tests.harness.worlds.memory_log import Entry, MemoryLog
from tests.harness.worlds.raft import RaftWorld, static_voters

NOW = 5000.0


def log_of(*epochs: int) -> MemoryLog:
    log = MemoryLog()
    log.append(entries(*epochs))
    return log


def entries(*epochs: int) -> tuple[Entry, ...]:
    return tuple(Entry(epoch, "") for epoch in epochs)


def node(
    log: MemoryLog | None = None,
    stored: ElectionState = ElectionState(),  # noqa: B008
    node_id: int = 1,
    voters: tuple[int, ...] = (1, 2, 3),
    *,
    can_vote: bool = True,
    bootstrap: tuple[tuple[str, int], ...] = (),
) -> Raft:
    settings = replace(RaftWorld().settings(node_id), can_vote=can_vote, bootstrap_servers=bootstrap)
    history = VoterHistory(static_voters(voters))
    return Raft(settings, log if log is not None else MemoryLog(), stored, history, random.Random(1), NOW)


def follower(log: MemoryLog | None = None, epoch: int = 3, leader: int = 2) -> Raft:
    raft = node(log, ElectionState(leader_id=leader, leader_epoch=epoch))
    raft.take_ready()
    return raft


def leader(log: MemoryLog | None = None, voters: tuple[int, ...] = (1, 2, 3)) -> tuple[Raft, MemoryLog]:
    """Return the leader of the epoch after the log's, with its LeaderChange record on disk."""
    log = log if log is not None else MemoryLog()
    raft = node(log, ElectionState(voted_id=1, leader_epoch=log.end.epoch + 1), voters=voters)
    for sent in raft.take_ready().requests:
        raft.on_response(sent, vote_response(raft.quorum.epoch, granted=True), NOW)
    log.append(entries(raft.quorum.epoch))
    raft.appended(NOW)
    for sent in raft.take_ready().requests:
        raft.on_failure(sent, NOW)
    return raft, log


def vote_request(
    epoch: int,
    *,
    candidate: int = 2,
    directory: Uuid = ZERO_UUID,
    last: tuple[int, int] = (0, 0),
    pre_vote: bool = False,
    voter: int = 1,
    cluster: str | None = None,
) -> vote.VoteRequest:
    """`last` is the end offset and last epoch of the candidate's log."""
    partition = vote.RequestPartitionData(
        replica_epoch=epoch,
        replica_id=candidate,
        replica_directory_id=directory,
        last_offset=last[0],
        last_offset_epoch=last[1],
        pre_vote=pre_vote,
    )
    topic = vote.RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return vote.VoteRequest(cluster_id=cluster, voter_id=voter, topics=[topic])


def vote_response(epoch: int, *, granted: bool, error: int = 0, leader_id: int = -1) -> vote.VoteResponse:
    partition = vote.ResponsePartitionData(
        error_code=error, leader_id=leader_id, leader_epoch=epoch, vote_granted=granted
    )
    return vote.VoteResponse(
        topics=[vote.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])]
    )


def begin_epoch(leader_id: int, epoch: int, voter: int = 1) -> begin_quorum_epoch.BeginQuorumEpochRequest:
    partition = begin_quorum_epoch.RequestPartitionData(leader_id=leader_id, leader_epoch=epoch)
    topic = begin_quorum_epoch.RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return begin_quorum_epoch.BeginQuorumEpochRequest(voter_id=voter, topics=[topic])


def end_epoch(leader_id: int, epoch: int, successors: list[int]) -> end_quorum_epoch.EndQuorumEpochRequest:
    partition = end_quorum_epoch.RequestPartitionData(
        leader_id=leader_id,
        leader_epoch=epoch,
        preferred_candidates=[
            end_quorum_epoch.ReplicaInfo(candidate_id=each, candidate_directory_id=ZERO_UUID)
            for each in successors
        ],
    )
    topic = end_quorum_epoch.RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return end_quorum_epoch.EndQuorumEpochRequest(topics=[topic])


def fetch_request(
    epoch: int,
    offset: int,
    last_epoch: int,
    *,
    replica: int = 2,
    high_watermark: int = -1,
    max_wait_ms: int = 500,
) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        high_watermark=high_watermark,
    )
    topic = fetch.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return fetch.FetchRequest(
        replica_state=fetch.ReplicaState(replica_id=replica), max_wait_ms=max_wait_ms, topics=[topic]
    )


def fetch_response(
    epoch: int,
    leader_id: int,
    *,
    error: int = 0,
    records: bytes = b"",
    high_watermark: int = -1,
    diverging: tuple[int, int] | None = None,
    snapshot: tuple[int, int] | None = None,
) -> fetch.FetchResponse:
    """`diverging` and `snapshot` are pairs of offset and epoch."""
    partition = fetch.PartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=high_watermark,
        records=records,
        current_leader=fetch.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch),
    )
    if diverging is not None:
        partition.diverging_epoch = fetch.EpochEndOffset(end_offset=diverging[0], epoch=diverging[1])
    if snapshot is not None:
        partition.snapshot_id = fetch.SnapshotId(end_offset=snapshot[0], epoch=snapshot[1])
    topic = fetch.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return fetch.FetchResponse(responses=[topic])


def only(sent: tuple[OutboundRequest, ...]) -> OutboundRequest:
    (request,) = sent
    return request
