"""`kafka-consumer-groups --reset-offsets`: where groups shall go on reading.

For each group that has no members a plan is made, partition by partition; with --execute it is committed. A
plan never points outside of what a partition holds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.cli.kafka.consumer_groups.command import SCENARIOS, print_error
from moldau.cli.kafka.consumer_groups.reset_plan import csv_line, parse_datetime, parse_duration, parse_plan
from moldau.cli.kafka.consumer_groups.scope import check_usable, partitions_of
from moldau.cli.shared.arguments import UsageError
from moldau.cli.shared.tool import ToolError, warn

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient

Offsets = dict[TopicPartition, int]
INACTIVE = ("Empty", "Dead")


def reset(admin: AdminClient, groups: Sequence[str], options: argparse.Namespace) -> None:
    plans: dict[str, Offsets] = {}
    for group, found in admin.describe_groups(groups).items():
        if isinstance(found, KafkaError):
            if found.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise found
        elif found.state not in INACTIVE:
            print_error(
                f"Assignments can only be reset if the group '{group}' is inactive, but the current state "
                f"is {found.state}."
            )
            plans[group] = {}
            continue
        plans[group] = _reset_inactive(admin, group, options)
    if options.export:
        single = len(options.group or ()) == 1
        lines = [
            csv_line(*(() if single else (group,)), partition.topic, partition.partition, offset)
            for group, plan in plans.items()
            for partition, offset in plan.items()
        ]
        print("".join(lines))
    else:
        print_plans(plans)


def print_plans(plans: Mapping[str, Offsets]) -> None:
    group_width = max([15, *map(len, plans)])
    topic_width = max([15, *(len(partition.topic) for plan in plans.values() for partition in plan)])
    rows = [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")] if plans else []
    rows += [
        (group, partition.topic, str(partition.partition), str(offset))
        for group, plan in plans.items()
        for partition, offset in sorted(plan.items())
    ]
    for group, topic, number, offset_text in rows:
        print(f"\n{group:<{group_width}} {topic:<{topic_width}} {number:<10} {offset_text}", end="")
    print()


def _reset_inactive(admin: AdminClient, group: str, options: argparse.Namespace) -> Offsets:
    plan = Planner(admin, group, options).plan()
    if options.execute and plan:
        for error in admin.alter_group_offsets(group, plan).values():
            if error is not None:
                raise error
    return plan


class Planner:
    """Works out where one group shall go on, as the options say."""

    def __init__(self, admin: AdminClient, group: str, options: argparse.Namespace) -> None:
        self._admin = admin
        self._group = group
        self._options = options

    def plan(self) -> Offsets:
        options = self._options
        partitions = self._partitions()
        check_usable(self._admin, partitions)
        if options.to_offset is not None:
            return self._within(dict.fromkeys(partitions, options.to_offset))
        if options.to_earliest or options.to_latest:
            return self._ends(partitions, earliest=options.to_earliest)
        if options.shift_by is not None:
            return self._within(self._shifted(partitions))
        if options.to_datetime is not None:
            return self._at(partitions, parse_datetime(options.to_datetime))
        if options.by_duration is not None:
            now_ms = time.time_ns() // 1_000_000
            return self._at(partitions, now_ms - parse_duration(options.by_duration))
        if options.from_file is not None:
            return self._from_file()
        if options.to_current:
            return self._current(partitions)
        listed = ", ".join(f"[{scenario}]" for scenario in SCENARIOS)
        raise UsageError(f"Option '[reset-offsets]' requires one of the following scenarios: [{listed}]")

    def _partitions(self) -> list[TopicPartition]:
        options = self._options
        if options.all_topics:
            return list(self._committed())
        if options.topic:
            return partitions_of(self._admin, options.topic)
        if options.from_file is None:
            raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
        return []

    def _committed(self) -> Offsets:
        from moldau.client.admin.client import checked

        found = checked(self._admin.list_group_offsets(self._group))
        return {partition: committed.offset for partition, committed in found.items()}

    def _shifted(self, partitions: Sequence[TopicPartition]) -> Offsets:
        committed = self._committed()
        for partition in partitions:
            if partition not in committed:
                raise UsageError(
                    f"Cannot shift offset for partition {partition} since there is no current "
                    "committed offset"
                )
        return {partition: committed[partition] + self._options.shift_by for partition in partitions}

    def _current(self, partitions: Sequence[TopicPartition]) -> Offsets:
        committed = self._committed()
        nowhere = [partition for partition in partitions if partition not in committed]
        here = {partition: committed[partition] for partition in partitions if partition in committed}
        return here | self._ends(nowhere, earliest=False)

    def _from_file(self) -> Offsets:
        path: str = self._options.from_file
        groups: list[str] = self._options.group or []
        try:
            with open(path, encoding="utf-8") as file:
                plans = parse_plan(file.read(), groups[0] if len(groups) == 1 else None)
        except OSError as error:
            raise ToolError(f"Unable to read file {path}: {error.strerror}") from error
        if self._group not in plans:
            print_error(f"No reset plan for group {self._group} found")
            return {}
        return self._within(plans[self._group])

    def _ends(self, partitions: Sequence[TopicPartition], *, earliest: bool) -> Offsets:
        from moldau.client.admin.offsets import OffsetSpec

        return self._offsets(partitions, OffsetSpec.EARLIEST if earliest else OffsetSpec.LATEST)

    def _at(self, partitions: Sequence[TopicPartition], timestamp_ms: int) -> Offsets:
        """The first offset at or after a time; the end where there is none."""
        found = self._offsets(partitions, timestamp_ms)
        later = [partition for partition, offset in found.items() if offset < 0]
        for partition in later:
            print(
                f"\nWarn: Partition {partition.partition} from topic {partition.topic} is empty. "
                "Falling back to latest known offset."
            )
        return found | self._ends(later, earliest=False)

    def _offsets(self, partitions: Sequence[TopicPartition], which: int) -> Offsets:
        from moldau.client.admin.client import checked

        found = checked(self._admin.list_offsets(dict.fromkeys(partitions, int(which))))
        return {partition: found[partition].offset for partition in partitions}

    def _within(self, wanted: Offsets) -> Offsets:
        """The offsets moved to where records are."""
        begins = self._ends(list(wanted), earliest=True)
        ends = self._ends(list(wanted), earliest=False)
        for partition, offset in wanted.items():
            if offset > ends[partition]:
                self._warn(offset, "higher than latest", partition, ends[partition])
            elif offset < begins[partition]:
                self._warn(offset, "lower than earliest", partition, begins[partition])
        return {
            partition: min(max(offset, begins[partition]), ends[partition])
            for partition, offset in wanted.items()
        }

    @staticmethod
    def _warn(offset: int, how: str, partition: TopicPartition, instead: int) -> None:
        warn(
            f"WARN New offset ({offset}) is {how} offset for topic partition {partition}. "
            f"Value will be set to {instead}"
        )
