"""The partitions that each member's endpoint serves, for clients that route queries (`application.server`).

The information has an epoch, so that a heartbeat carries it only when it has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.groups.assignors.java_order import string_order
from moldau.groups.streams.configured_topology import ConfiguredTopology
from moldau.groups.streams.group import StreamsGroup
from moldau.groups.streams.member import StreamsMember, UserEndpoint
from moldau.groups.streams.topology import source_names
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.streams_group_heartbeat import Endpoint, EndpointToPartitions, TopicPartition


def partitions_by_endpoint(
    group: StreamsGroup, updated: StreamsMember, configured: ConfiguredTopology, image: MetadataImage
) -> list[EndpointToPartitions]:
    """Return the endpoints of all members, the updated one last."""
    others = [each for each in group.members.values() if each.member_id != updated.member_id]
    return [
        _of_member(member, member.user_endpoint, configured, image)
        for member in (*others, updated)
        if member.user_endpoint is not None
    ]


def _of_member(
    member: StreamsMember, endpoint: UserEndpoint, configured: ConfiguredTopology, image: MetadataImage
) -> EndpointToPartitions:
    return EndpointToPartitions(
        user_endpoint=Endpoint(host=endpoint.host, port=endpoint.port),
        active_partitions=_partitions(member.assigned.active, configured, image),
        standby_partitions=_partitions(member.assigned.standby, configured, image),
    )


def _partitions(
    tasks: Mapping[str, Iterable[int]], configured: ConfiguredTopology, image: MetadataImage
) -> list[TopicPartition]:
    """Return the partitions that tasks read; of topics with fewer partitions than tasks, the first ones."""
    found = []
    for subtopology_id in sorted(tasks, key=string_order):
        known = (configured.subtopologies or {}).get(subtopology_id)
        if known is None:
            continue
        partitions = sorted(tasks[subtopology_id])
        for name in sorted(set(source_names(known.subtopology)), key=string_order):
            topic = image.topics.by_name.get(name)
            if topic is not None:
                found.append(TopicPartition(topic=name, partitions=partitions[: len(topic.partitions)]))
    return found
