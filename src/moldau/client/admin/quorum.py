"""The metadata quorum: describe its replicas, add and remove voters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from moldau.base.errors import ErrorCode
from moldau.base.ids import METADATA_TOPIC, Uuid
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check, error_of
from moldau.config.listeners import format_address
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


class VoterListener(NamedTuple):
    """A listener of a controller; `str()` formats it as in properties files."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{format_address(self.host, self.port)}"


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """A voter or observer; times are -1 if the leader does not know them."""

    id: int
    directory_id: Uuid
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int
    listeners: tuple[VoterListener, ...]


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[QuorumReplica]
    observers: list[QuorumReplica]


async def describe_metadata_quorum(cluster: Cluster) -> QuorumDescription:
    partitions = [RequestPartitionData(partition_index=0)]
    request = DescribeQuorumRequest(
        topics=[RequestTopicData(topic_name=METADATA_TOPIC, partitions=partitions)]
    )

    async def attempt() -> tuple[DescribeQuorumResponse, ResponsePartitionData]:
        answer: DescribeQuorumResponse = await cluster.ask_controller(request)
        check(answer.error_code, answer.error_message)
        partition = answer.topics[0].partitions[0]
        check(partition.error_code, partition.error_message)
        return answer, partition

    answer, found = await cluster.retry(attempt)
    listeners = {
        node.node_id: tuple(VoterListener(each.name, each.host, each.port) for each in node.listeners)
        for node in answer.nodes
    }
    return QuorumDescription(
        found.leader_id,
        found.leader_epoch,
        found.high_watermark,
        [_replica(state, listeners.get(state.replica_id, ())) for state in found.current_voters],
        [_replica(state, listeners.get(state.replica_id, ())) for state in found.observers],
    )


async def add_raft_voter(
    cluster: Cluster, voter: int, directory_id: Uuid, listeners: Iterable[VoterListener]
) -> None:
    request = AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=cluster.settings.request_timeout_ms,
        voter_id=voter,
        voter_directory_id=directory_id,
        listeners=[Listener(name=each.name, host=each.host, port=each.port) for each in listeners],
    )

    async def attempt() -> AddRaftVoterResponse:
        answer: AddRaftVoterResponse = await cluster.ask_controller(request)
        _check_controller(answer.error_code, answer.error_message)
        return answer

    answer = await cluster.retry(attempt)
    check(answer.error_code, answer.error_message)


async def remove_raft_voter(cluster: Cluster, voter: int, directory_id: Uuid) -> None:
    request = RemoveRaftVoterRequest(cluster_id=None, voter_id=voter, voter_directory_id=directory_id)

    async def attempt() -> RemoveRaftVoterResponse:
        answer: RemoveRaftVoterResponse = await cluster.ask_controller(request)
        _check_controller(answer.error_code, answer.error_message)
        return answer

    answer = await cluster.retry(attempt)
    check(answer.error_code, answer.error_message)


def _check_controller(error_code: int, message: str | None) -> None:
    """Retry only NOT_CONTROLLER: after other errors the change may have been made."""
    if error_code == ErrorCode.NOT_CONTROLLER:
        raise error_of(error_code, message)


def _replica(state: ReplicaState, listeners: tuple[VoterListener, ...]) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id,
        state.replica_directory_id,
        state.log_end_offset,
        state.last_fetch_timestamp,
        state.last_caught_up_timestamp,
        listeners,
    )
