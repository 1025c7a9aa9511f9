"""Reassignments of partitions, log directories of replicas, leader elections."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.topic_types import Reassignment
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check, error_of
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from moldau.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from moldau.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)


class ElectionType(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


class Replica(NamedTuple):
    """A replica of a partition, formatted as in Kafka and ordered by broker first, as by its tools."""

    broker: int
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker}"

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class ReplicaLogDirs(NamedTuple):
    """The current log directory of a replica and the one it is being moved to; None if there is none."""

    current: str | None = None
    future: str | None = None


async def list_partition_reassignments(
    cluster: Cluster, partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, Reassignment]:
    """Return ongoing reassignments, of all partitions by default."""
    topics = None
    if partitions is not None:
        topics = [
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in _by_topic(partitions).items()
        ]
    request = ListPartitionReassignmentsRequest(topics=topics, timeout_ms=cluster.settings.request_timeout_ms)

    async def attempt() -> ListPartitionReassignmentsResponse:
        answer: ListPartitionReassignmentsResponse = await cluster.ask_controller(request)
        check(answer.error_code, answer.error_message)
        return answer

    answer = await cluster.retry(attempt)
    return {
        TopicPartition(topic.name, partition.partition_index): Reassignment(
            partition.replicas, partition.adding_replicas, partition.removing_replicas
        )
        for topic in answer.topics
        for partition in topic.partitions
    }


async def alter_partition_reassignments(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, Sequence[int] | None],
    *,
    allow_replication_factor_change: bool = True,
) -> dict[TopicPartition, KafkaError | None]:
    """Reassign partitions to these replicas; None cancels an ongoing reassignment."""
    topics = [
        ReassignableTopic(
            name=topic, partitions=[_reassignable(TopicPartition(topic, i), wanted) for i in indexes]
        )
        for topic, indexes in _by_topic(wanted).items()
    ]
    request = AlterPartitionReassignmentsRequest(
        topics=topics,
        timeout_ms=cluster.settings.request_timeout_ms,
        allow_replication_factor_change=allow_replication_factor_change,
    )

    async def attempt() -> AlterPartitionReassignmentsResponse:
        answer: AlterPartitionReassignmentsResponse = await cluster.ask_controller(request)
        check(answer.error_code, answer.error_message)
        return answer

    answer = await cluster.retry(attempt)
    return {
        TopicPartition(topic.name, p.partition_index): error_of(p.error_code, p.error_message)
        if p.error_code
        else None
        for topic in answer.responses
        for p in topic.partitions
    }


async def elect_leaders(
    cluster: Cluster, kind: ElectionType, partitions: Iterable[TopicPartition] | None
) -> dict[TopicPartition, KafkaError | None]:
    """Elect leaders of these partitions, or of all that need it (None)."""
    topics = None
    if partitions is not None:
        topics = [TopicPartitions(topic=t, partitions=ids) for t, ids in _by_topic(partitions).items()]
    request = ElectLeadersRequest(
        election_type=kind,
        topic_partitions=topics,
        timeout_ms=cluster.settings.request_timeout_ms,
    )

    async def attempt() -> ElectLeadersResponse:
        answer: ElectLeadersResponse = await cluster.ask_controller(request)
        check(answer.error_code)
        for topic in answer.replica_election_results:
            if any(p.error_code == ErrorCode.NOT_CONTROLLER for p in topic.partition_result):
                raise error_of(ErrorCode.NOT_CONTROLLER)
        return answer

    answer = await cluster.retry(attempt)
    return {
        TopicPartition(topic.topic, p.partition_id): error_of(p.error_code, p.error_message)
        if p.error_code
        else None
        for topic in answer.replica_election_results
        for p in topic.partition_result
    }


async def describe_replica_log_dirs(
    cluster: Cluster, replicas: Iterable[Replica]
) -> dict[Replica, ReplicaLogDirs]:
    """Return the log directories of replicas; an empty entry if the broker does not have the replica."""
    by_broker: dict[int, list[Replica]] = defaultdict(list)
    for replica in replicas:
        by_broker[replica.broker].append(replica)
    answers = await asyncio.gather(*(_replica_dirs(cluster, b, group) for b, group in by_broker.items()))
    return {replica: found for answer in answers for replica, found in answer.items()}


async def alter_replica_log_dirs(
    cluster: Cluster, wanted: Mapping[Replica, str]
) -> dict[Replica, KafkaError | None]:
    """Move replicas to these log directories of their brokers."""
    by_broker: dict[int, dict[Replica, str]] = defaultdict(dict)
    for replica, path in wanted.items():
        by_broker[replica.broker][replica] = path
    answers = await asyncio.gather(*(_alter_dirs(cluster, b, group) for b, group in by_broker.items()))
    return {replica: error for answer in answers for replica, error in answer.items()}


async def _replica_dirs(
    cluster: Cluster, broker: int, replicas: list[Replica]
) -> dict[Replica, ReplicaLogDirs]:
    topics = [
        DescribableLogDirTopic(topic=topic, partitions=indexes)
        for topic, indexes in _by_topic(replica.topic_partition for replica in replicas).items()
    ]
    answer: DescribeLogDirsResponse = await cluster.retry(
        lambda: cluster.ask_node(broker, DescribeLogDirsRequest(topics=topics))
    )
    check(answer.error_code)
    found = {replica: ReplicaLogDirs() for replica in replicas}
    for result in answer.results:
        for topic in result.topics:
            for p in topic.partitions:
                replica = Replica(broker, topic.name, p.partition_index)
                known = found.get(replica, ReplicaLogDirs())
                which = {"future" if p.is_future_key else "current": result.log_dir}
                found[replica] = known._replace(**which)
    return found


async def _alter_dirs(
    cluster: Cluster, broker: int, wanted: dict[Replica, str]
) -> dict[Replica, KafkaError | None]:
    by_path: dict[str, list[TopicPartition]] = defaultdict(list)
    for replica, path in wanted.items():
        by_path[path].append(replica.topic_partition)
    dirs = [
        AlterReplicaLogDir(path=path, topics=_movable(partitions)) for path, partitions in by_path.items()
    ]
    answer: AlterReplicaLogDirsResponse = await cluster.retry(
        lambda: cluster.ask_node(broker, AlterReplicaLogDirsRequest(dirs=dirs))
    )
    return {
        Replica(broker, topic.topic_name, p.partition_index): error_of(p.error_code) if p.error_code else None
        for topic in answer.results
        for p in topic.partitions
    }


def _reassignable(
    partition: TopicPartition, wanted: Mapping[TopicPartition, Sequence[int] | None]
) -> ReassignablePartition:
    replicas = wanted[partition]
    return ReassignablePartition(
        partition_index=partition.partition, replicas=None if replicas is None else list(replicas)
    )


def _movable(partitions: Iterable[TopicPartition]) -> list[AlterReplicaLogDirTopic]:
    return [AlterReplicaLogDirTopic(name=t, partitions=ids) for t, ids in _by_topic(partitions).items()]


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        topics[topic].append(partition)
    return topics
