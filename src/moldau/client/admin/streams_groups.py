"""Streams groups (KIP-1071): describe."""

from __future__ import annotations

from typing import NamedTuple

from moldau.base.ids import TopicPartition
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.coordinators import GROUP, ask_coordinator, coordinator_id
from moldau.client.wire.errors import check
from moldau.protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    Subtopology,
)


class StreamsGroupDescription(NamedTuple):
    group: DescribedGroup
    coordinator: int

    @property
    def subtopologies(self) -> list[Subtopology]:
        topology = self.group.topology
        return [] if topology is None else topology.subtopologies or []

    @property
    def input_topics(self) -> set[str]:
        """The topics that the application reads and does not write itself."""
        return {name for each in self.subtopologies for name in each.source_topics}

    @property
    def source_topics(self) -> set[str]:
        """The topics that tasks read."""
        repartitioned = (
            topic.name for each in self.subtopologies for topic in each.repartition_source_topics
        )
        return {*self.input_topics, *repartitioned}

    @property
    def internal_topics(self) -> list[str]:
        names = dict.fromkeys(
            topic.name
            for each in self.subtopologies
            for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
        )
        return [name for name in names if name not in self.input_topics]

    @property
    def active_partitions(self) -> set[TopicPartition]:
        """The partitions that the active tasks of all members read."""
        sources = {
            each.subtopology_id: (
                *each.source_topics,
                *(topic.name for topic in each.repartition_source_topics),
            )
            for each in self.subtopologies
        }
        return {
            TopicPartition(topic, partition)
            for member in self.group.members
            for tasks in member.assignment.active_tasks
            for topic in sources.get(tasks.subtopology_id, ())
            for partition in tasks.partitions
        }


async def describe_streams_group(cluster: Cluster, group: str) -> StreamsGroupDescription:
    def read(answer: StreamsGroupDescribeResponse) -> DescribedGroup:
        found = answer.groups[0]
        check(found.error_code, found.error_message)
        return found

    request = StreamsGroupDescribeRequest(group_ids=[group])
    described = await ask_coordinator(cluster, GROUP, group, request, read)
    return StreamsGroupDescription(described, await coordinator_id(cluster, GROUP, group))
