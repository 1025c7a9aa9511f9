"""The topology of a streams group (KIP-1071), from what its members told the coordinator."""

from __future__ import annotations

from typing import Any

from moldau.base.errors import KafkaError
from moldau.client.admin.streams_groups import StreamsGroupDescription, describe_streams_group
from moldau.console.pages.flow import Edge, Node, picture, topic_node
from moldau.console.web.call import Call


async def topology(call: Call, group: str) -> list[dict[str, Any]]:
    """Return the subtopologies with their topics; none if the coordinator does not answer."""
    try:
        found = await call.view.shared.get(
            ("topology", group), lambda: describe_streams_group(call.view.cluster, group)
        )
    except KafkaError:
        return []
    tasks = _active_tasks(found)
    return [
        {
            "subtopology": each.subtopology_id,
            "source_topics": sorted(each.source_topics),
            "repartition_source_topics": sorted(topic.name for topic in each.repartition_source_topics),
            "repartition_sink_topics": sorted(each.repartition_sink_topics),
            "changelog_topics": sorted(topic.name for topic in each.state_changelog_topics),
            "active_tasks": tasks.get(each.subtopology_id, 0),
        }
        for each in found.subtopologies
    ]


def _active_tasks(found: StreamsGroupDescription) -> dict[str, int]:
    tasks: dict[str, int] = {}
    for member in found.group.members:
        for each in member.assignment.active_tasks:
            tasks[each.subtopology_id] = tasks.get(each.subtopology_id, 0) + len(each.partitions)
    return tasks


def topology_picture(call: Call, subtopologies: list[dict[str, Any]]) -> dict[str, Any] | None:
    nodes: list[Node] = []
    edges: list[Edge] = []
    for each in subtopologies:
        own = f"subtopology {each['subtopology']}"
        count = each["active_tasks"]
        tasks = "1 active task" if count == 1 else f"{count} active tasks"
        nodes.append(Node(own, f"Subtopology {each['subtopology']}", tasks, strong=True))
        for role, names in (
            ("source", each["source_topics"]),
            ("repartition", each["repartition_source_topics"]),
        ):
            nodes += [topic_node(call, name, role) for name in names]
            edges += [(f"topic {name}", own) for name in names]
        for role, names in (
            ("repartition", each["repartition_sink_topics"]),
            ("changelog", each["changelog_topics"]),
        ):
            nodes += [topic_node(call, name, role) for name in names]
            edges += [(own, f"topic {name}") for name in names]
    return picture(nodes, edges)
