"""Members of streams groups own the partitions of the source topics of their tasks (KIP-1071)."""

from __future__ import annotations

from moldau.base.ids import TopicPartition
from moldau.lag.collection.groups import streams_description
from moldau.protocol.messages import streams_group_describe as messages


def test_tasks_are_partitions_of_source_topics() -> None:
    topology = messages.Topology(
        subtopologies=[
            messages.Subtopology(subtopology_id="0", source_topics=["orders", "customers"]),
            messages.Subtopology(
                subtopology_id="1", repartition_source_topics=[messages.TopicInfo(name="by-user")]
            ),
        ]
    )
    active = messages.Assignment(
        active_tasks=[
            messages.TaskIds(subtopology_id="0", partitions=[1]),
            messages.TaskIds(subtopology_id="1", partitions=[0, 2]),
        ],
        standby_tasks=[messages.TaskIds(subtopology_id="0", partitions=[5])],
    )
    member = messages.Member(member_id="m", client_id="c", client_host="/h", assignment=active)
    group = messages.DescribedGroup(
        group_id="app", group_state="Stable", group_epoch=4, topology=topology, members=[member]
    )
    described = streams_description(group)
    assert (described.state, described.epoch) == ("Stable", 4)
    (found,) = described.members
    assert found.partitions == {
        TopicPartition("orders", 1),
        TopicPartition("customers", 1),
        TopicPartition("by-user", 0),
        TopicPartition("by-user", 2),
    }


def test_a_group_without_a_topology_owns_nothing() -> None:
    tasks = messages.Assignment(active_tasks=[messages.TaskIds(subtopology_id="0", partitions=[1])])
    member = messages.Member(member_id="m", assignment=tasks)
    group = messages.DescribedGroup(group_state="NotReady", topology=None, members=[member])
    assert streams_description(group).members[0].partitions == frozenset()
