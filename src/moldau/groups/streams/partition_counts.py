"""The partition counts of internal topics, derived from the topics that exist.

A repartition topic without a fixed count has as many partitions as the largest topic read by a subtopology
that writes it. Copartitioned topics must have the same number of partitions. A changelog topic has as many
partitions as the largest topic that its subtopology reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.assignors.java_order import string_order, strings_in_hash_order
from moldau.groups.streams.statuses import StatusCode
from moldau.groups.streams.topology import StreamsTopology, invalid_topology, source_names
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.streams_groups import CopartitionGroup, Subtopology


class TopicConfigurationError(Exception):
    """The existing topics do not fit the topology; reported as a status, since an operator can repair it."""

    def __init__(self, code: StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class PartitionCounts:
    """The counts of existing topics and of internal topics that are to be created."""

    def __init__(self, topology: StreamsTopology, image: MetadataImage) -> None:
        self._subtopologies = list(topology.subtopologies.values())
        self._topics = image.topics.by_name
        #: The counts of internal topics, whether or not they exist.
        self.internal: dict[str, int] = {}

    def decide(self) -> None:
        self.internal.update(self._repartition_topics())
        self._enforce_copartitioning()
        for subtopology in self._subtopologies:
            count = self.tasks_of(subtopology)
            self.internal.update((each.name, count) for each in subtopology.state_changelog_topics)

    def tasks_of(self, subtopology: Subtopology) -> int:
        """Return the number of tasks: the largest partition count of its sources."""
        names = source_names(subtopology)
        if not names:
            raise invalid_topology(f"No source topics found for subtopology {subtopology.subtopology_id}")
        return max(map(self._of, names))

    def _find(self, name: str) -> int | None:
        topic = self._topics.get(name)
        return self.internal.get(name) if topic is None else len(topic.partitions)

    def _of(self, name: str) -> int:
        count = self._find(name)
        if count is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return count

    # Repartition topics.

    def _repartition_topics(self) -> dict[str, int]:
        counts = {
            topic.name: topic.partitions
            for subtopology in self._subtopologies
            for topic in subtopology.repartition_source_topics
            if topic.partitions != 0
        }
        while True:
            progress = missing = False
            for subtopology in self._subtopologies:
                for sink in subtopology.repartition_sink_topics:
                    if sink in counts:
                        continue
                    count = self._largest_source(subtopology, counts)
                    if count is None:
                        missing = True
                    else:
                        counts[sink] = count
                        progress = True
            if not missing:
                break
            if not progress:
                raise invalid_topology(
                    "Failed to compute number of partitions for all repartition topics. There may be loops "
                    "in the topology that cannot be resolved."
                )
        if any(
            topic.name not in counts
            for subtopology in self._subtopologies
            for topic in subtopology.repartition_source_topics
        ):
            raise invalid_topology(
                "Failed to compute number of partitions for all repartition topics, because a repartition "
                "source topic is never used as a sink topic."
            )
        return counts

    def _largest_source(self, subtopology: Subtopology, counts: dict[str, int]) -> int | None:
        """Return the largest known count of a subtopology's sources."""
        found = [counts.get(each.name) for each in subtopology.repartition_source_topics]
        found += [self._find(name) for name in subtopology.source_topics]
        return max((each for each in found if each is not None), default=None)

    # Copartitioned topics.

    def _enforce_copartitioning(self) -> None:
        repartition = [
            topic for subtopology in self._subtopologies for topic in subtopology.repartition_source_topics
        ]
        fixed = {topic.name for topic in repartition if topic.partitions != 0}
        flexible = {topic.name for topic in repartition if topic.partitions == 0}
        for subtopology in self._subtopologies:
            for group in subtopology.copartition_groups:
                self._enforce(_names(subtopology, group), fixed, flexible)

    def _enforce(self, names: Collection[str], fixed: Collection[str], flexible: Collection[str]) -> None:
        if not names:
            return
        internal = {name: self._of(name) for name in names if name in fixed or name in flexible}
        external = {name: self._of(name) for name in names if name not in internal}
        if external:
            count = self._equal(external, external)
        elif fixed:
            # As in Kafka, also fixed topics outside of this copartition group must agree.
            count = self._equal({name: self._of(name) for name in fixed}, internal)
        else:
            count = max(internal.values())
        for name in strings_in_hash_order(internal):
            if name in fixed and internal[name] != count:
                raise TopicConfigurationError(
                    StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Number of partitions [{internal[name]}] of repartition topic [{name}] doesn't match "
                    f"number of partitions [{count}] of the source topic.",
                )
            self.internal[name] = count

    @staticmethod
    def _equal(counts: dict[str, int], reported: dict[str, int]) -> int:
        if len(set(counts.values())) > 1:
            text = ", ".join(f"{name}={reported[name]}" for name in sorted(reported, key=string_order))
            raise TopicConfigurationError(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Following topics do not have the same number of partitions: [{{{text}}}]",
            )
        return next(iter(counts.values()))


def _names(subtopology: Subtopology, group: CopartitionGroup) -> list[str]:
    """Return the topics of a copartition group, which names them by index."""

    def at(names: list[str], indexes: Iterable[int]) -> list[str]:
        if any(not 0 <= index < len(names) for index in indexes):
            raise invalid_topology(
                f"A copartition group of subtopology {subtopology.subtopology_id} names an unknown topic."
            )
        return [names[index] for index in indexes]

    repartition = [each.name for each in subtopology.repartition_source_topics]
    found = at(subtopology.source_topics, group.source_topics)
    found += at(repartition, group.repartition_source_topics)
    return list(dict.fromkeys(found))
