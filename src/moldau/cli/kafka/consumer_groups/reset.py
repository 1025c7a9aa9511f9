"""`kafka-consumer-groups --reset-offsets`: compute and commit new offsets of groups without members.

A plan maps partitions to offsets between the log start offset and the log end offset. It is committed only
with --execute.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.cli.kafka.consumer_groups.reset_plan import csv_line, parse_datetime, parse_duration, parse_plan
from moldau.cli.kafka.consumer_groups.scope import check_usable, partitions_of
from moldau.cli.shared.arguments import UsageError
from moldau.cli.shared.groups import SCENARIOS
from moldau.cli.shared.tool import ToolError, print_error, warn

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
    planner = Planner(admin, group, Scenario.from_options(options))
    plan = planner.plan(_partitions(admin, planner, options))
    if options.execute and plan:
        for error in admin.alter_group_offsets(group, plan).values():
            if error is not None:
                raise error
    return plan


def _partitions(admin: AdminClient, planner: Planner, options: argparse.Namespace) -> list[TopicPartition]:
    """Return the partitions that the reset scope names."""
    if options.all_topics:
        return list(planner.committed())
    if options.topic:
        return partitions_of(admin, options.topic)
    if options.from_file is None:
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
    return []


class Scenario(NamedTuple):
    """The target of a reset; one field is set. `file_group` is the group of lines without a group."""

    to_offset: int | None = None
    shift_by: int | None = None
    to_datetime: str | None = None
    by_duration: str | None = None
    to_earliest: bool = False
    to_latest: bool = False
    to_current: bool = False
    from_file: str | None = None
    file_group: str | None = None

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> Scenario:
        groups: list[str] = options.group or []
        return cls(
            to_offset=options.to_offset,
            shift_by=options.shift_by,
            to_datetime=options.to_datetime,
            by_duration=options.by_duration,
            to_earliest=options.to_earliest,
            to_latest=options.to_latest,
            to_current=options.to_current,
            from_file=options.from_file,
            file_group=groups[0] if len(groups) == 1 else None,
        )


class Planner:
    """Computes the new offsets of one group."""

    def __init__(self, admin: AdminClient, group: str, scenario: Scenario) -> None:
        self._admin = admin
        self._group = group
        self._scenario = scenario

    def plan(self, partitions: Sequence[TopicPartition]) -> Offsets:
        scenario = self._scenario
        check_usable(self._admin, partitions)
        if scenario.to_offset is not None:
            return self._within(dict.fromkeys(partitions, scenario.to_offset))
        if scenario.to_earliest or scenario.to_latest:
            return self._ends(partitions, earliest=scenario.to_earliest)
        if scenario.shift_by is not None:
            return self._within(self._shifted(partitions, scenario.shift_by))
        if scenario.to_datetime is not None:
            return self._at(partitions, parse_datetime(scenario.to_datetime))
        if scenario.by_duration is not None:
            now_ms = time.time_ns() // 1_000_000
            return self._at(partitions, now_ms - parse_duration(scenario.by_duration))
        if scenario.from_file is not None:
            return self._from_file(scenario.from_file)
        if scenario.to_current:
            return self._current(partitions)
        listed = ", ".join(f"[{each}]" for each in SCENARIOS)
        raise UsageError(f"Option '[reset-offsets]' requires one of the following scenarios: [{listed}]")

    def committed(self) -> Offsets:
        from moldau.client.admin.client import checked

        found = checked(self._admin.list_group_offsets(self._group))
        return {partition: committed.offset for partition, committed in found.items()}

    def _shifted(self, partitions: Sequence[TopicPartition], count: int) -> Offsets:
        committed = self.committed()
        for partition in partitions:
            if partition not in committed:
                raise UsageError(
                    f"Cannot shift offset for partition {partition} since there is no current "
                    "committed offset"
                )
        return {partition: committed[partition] + count for partition in partitions}

    def _current(self, partitions: Sequence[TopicPartition]) -> Offsets:
        committed = self.committed()
        uncommitted = [partition for partition in partitions if partition not in committed]
        current = {partition: committed[partition] for partition in partitions if partition in committed}
        return current | self._ends(uncommitted, earliest=False)

    def _from_file(self, path: str) -> Offsets:
        try:
            with open(path, encoding="utf-8") as file:
                plans = parse_plan(file.read(), self._scenario.file_group)
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
        """Return the first offsets at or after a time, or the log end offset where there is none."""
        found = self._offsets(partitions, timestamp_ms)
        missing = [partition for partition, offset in found.items() if offset < 0]
        for partition in missing:
            print(
                f"\nWarn: Partition {partition.partition} from topic {partition.topic} is empty. "
                "Falling back to latest known offset."
            )
        return found | self._ends(missing, earliest=False)

    def _offsets(self, partitions: Sequence[TopicPartition], which: int) -> Offsets:
        from moldau.client.admin.client import checked

        found = checked(self._admin.list_offsets(dict.fromkeys(partitions, int(which))))
        return {partition: found[partition].offset for partition in partitions}

    def _within(self, wanted: Offsets) -> Offsets:
        """Limit offsets to the range between log start offset and log end offset."""
        starts = self._ends(list(wanted), earliest=True)
        ends = self._ends(list(wanted), earliest=False)
        for partition, offset in wanted.items():
            if offset > ends[partition]:
                self._warn(offset, "higher than latest", partition, ends[partition])
            elif offset < starts[partition]:
                self._warn(offset, "lower than earliest", partition, starts[partition])
        return {
            partition: min(max(offset, starts[partition]), ends[partition])
            for partition, offset in wanted.items()
        }

    @staticmethod
    def _warn(offset: int, how: str, partition: TopicPartition, instead: int) -> None:
        warn(
            f"WARN New offset ({offset}) is {how} offset for topic partition {partition}. "
            f"Value will be set to {instead}"
        )
