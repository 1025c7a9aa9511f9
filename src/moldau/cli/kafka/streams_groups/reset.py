"""`kafka-streams-groups --reset-offsets`: new offsets of groups without members, for their input topics."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.cli.kafka.consumer_groups.reset import INACTIVE, Offsets, Planner, Scenario
from moldau.cli.kafka.consumer_groups.reset_plan import csv_line
from moldau.cli.kafka.consumer_groups.scope import check_usable, partitions_of
from moldau.cli.kafka.streams_groups.deletion import delete_after_reset, internal_topics
from moldau.cli.shared.arguments import UsageError
from moldau.cli.shared.tool import print_error
from moldau.client.admin.streams_groups import StreamsGroupDescription, describe_streams_group

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient


def reset(admin: AdminClient, groups: Sequence[str], options: argparse.Namespace) -> None:
    plans: dict[str, Offsets] = {}
    for group in groups:
        described = _described(admin, group)
        state = "Dead" if described is None else described.group.group_state
        if state not in INACTIVE:
            print_error(
                f"Assignments can only be reset if the group '{group}' is inactive, but the current state "
                f"is {state}."
            )
            plans[group] = {}
            continue
        plans[group] = _reset_inactive(admin, group, described, options)
        if options.execute and described is not None:
            _delete_internal_topics(admin, described, options)
    _print(plans, options)


def _described(admin: AdminClient, group: str) -> StreamsGroupDescription | None:
    try:
        return admin.run(describe_streams_group(admin.client.cluster, group))
    except KafkaError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return None


def _reset_inactive(
    admin: AdminClient, group: str, described: StreamsGroupDescription | None, options: argparse.Namespace
) -> Offsets:
    planner = Planner(admin, group, Scenario.from_options(options))
    plan = planner.plan(_partitions(admin, planner, described, options))
    if options.execute and plan:
        for error in admin.alter_group_offsets(group, plan).values():
            if error is not None:
                raise error
    return plan


def _partitions(
    admin: AdminClient,
    planner: Planner,
    described: StreamsGroupDescription | None,
    options: argparse.Namespace,
) -> list[TopicPartition]:
    """Return the partitions that the reset scope names; the group must have offsets of them."""
    if options.all_input_topics:
        topics = set() if described is None else described.input_topics
        return [each for each in planner.committed() if each.topic in topics]
    if options.input_topic:
        partitions = partitions_of(admin, options.input_topic)
        check_usable(admin, partitions)
        if planner.committed().keys() >= set(partitions):
            return partitions
        group = "" if described is None else described.group.group_id
        print_error(f"One or more topics are not part of the group '{group}'.")
        return []
    if options.from_file is None:
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
    return []


def _delete_internal_topics(
    admin: AdminClient, described: StreamsGroupDescription, options: argparse.Namespace
) -> None:
    topics: Sequence[str] = options.delete_internal_topic or ()
    if options.delete_all_internal_topics:
        topics = internal_topics(described)
    delete_after_reset(admin, described.group.group_id, topics)


def _print(plans: Mapping[str, Offsets], options: argparse.Namespace) -> None:
    if options.export:
        single = len(options.group or ()) == 1
        lines = [
            csv_line(*(() if single else (group,)), partition.topic, partition.partition, offset)
            for group, plan in plans.items()
            for partition, offset in plan.items()
        ]
        print("".join(lines))
        return
    rows: list[tuple[object, ...]] = [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")] if plans else []
    rows += [
        (group, partition.topic, partition.partition, offset)
        for group, plan in plans.items()
        for partition, offset in sorted(plan.items())
    ]
    for group, topic, number, offset in rows:
        print(f"\n{group:<30} {topic:<30} {number:<10} {offset:<15}", end="")
    print()
