"""kafka-get-offsets: print the earliest or latest offsets of partitions, or those of a timestamp."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import KafkaError
from moldau.base.ids import INTERNAL_TOPICS, TopicPartition
from moldau.cli.shared.arguments import ToolParser, TopicPattern, UsageError, given
from moldau.cli.shared.connection import add_bootstrap_options, open_admin
from moldau.cli.shared.tool import ToolError, run_tool, warn

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient

#: Returns whether a topic and one of its partitions (None for any) are selected.
Filter = Callable[[str, int | None], bool]

_RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|([0-9]*)-([0-9]*)))?")


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv, report=lambda text: warn(f"Error occurred: {text}"))


def _parser() -> ToolParser:
    parser = ToolParser("kafka-get-offsets")
    add_bootstrap_options(parser)
    parser.option(
        "--topic-partitions",
        "LIST",
        "Patterns for partitions, as topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3. A topic is a regular "
        "expression; the upper end of a range is exclusive.",
    )
    parser.option("--topic", "TOPIC", "A regular expression for topics; all topics by default.")
    parser.option("--partitions", "IDS", "Partitions of those topics, as 0,1,2; all by default.")
    parser.option(
        "--time",
        "TIME",
        "A timestamp in ms, for the first offset at or after it; or -1 or latest, -2 or earliest, "
        "-3 or max-timestamp, -4 or earliest-local, -5 or latest-tiered, -6 or earliest-pending-upload. "
        "latest by default.",
        default="latest",
    )
    parser.hidden("--offsets")
    parser.hidden("--max-wait-ms")
    parser.flag("--exclude-internal-topics", "Exclude internal topics.")
    return parser


def _execute(options: argparse.Namespace) -> None:
    timestamp = _parse_time(options.time)
    wanted = _parse_filter(options)
    with open_admin(options, client_id="GetOffsetShell") as admin:
        partitions = _partitions(admin, wanted, exclude_internal=options.exclude_internal_topics)
        if not partitions:
            raise ToolError("Could not match any topic-partitions with the specified filters")
        results = admin.list_offsets(dict.fromkeys(partitions, timestamp))
        for partition in sorted(partitions, key=str):
            result = results[partition]
            if isinstance(result, KafkaError):
                warn(f"Skip getting offsets for topic-partition {partition} due to error: {result}")
            elif result.offset >= 0:
                print(f"{partition.topic}:{partition.partition}:{result.offset}")


def _partitions(admin: AdminClient, wanted: Filter, *, exclude_internal: bool) -> list[TopicPartition]:
    from moldau.client.admin.client import checked

    names = [
        name
        for name in admin.list_topics()
        if wanted(name, None) and not (exclude_internal and name in INTERNAL_TOPICS)
    ]
    return [
        TopicPartition(topic.name, partition.partition)
        for topic in checked(admin.describe_topics(names)).values()
        for partition in topic.partitions
        if wanted(topic.name, partition.partition)
    ]


def _parse_time(text: str) -> int:
    from moldau.client.admin.offsets import OffsetSpec

    named = {spec.name.lower().replace("_", "-"): spec.value for spec in OffsetSpec}
    if text in named:
        return named[text]
    try:
        return int(text)
    except ValueError:
        raise ToolError(
            f"Malformed time argument {text}. Please use -1 or latest / -2 or earliest / "
            "-3 or max-timestamp / -4 or earliest-local / -5 or latest-tiered / "
            "-6 or earliest-pending-upload, or a specified long format timestamp"
        ) from None


def _parse_filter(options: argparse.Namespace) -> Filter:
    if not given(options, "topic-partitions"):
        pattern = TopicPattern(options.topic or ".*")
        ids = _parse_ids(options.partitions)
        return lambda topic, partition: (
            pattern.allows(topic) and (not ids or partition is None or partition in ids)
        )
    if given(options, "topic") or given(options, "partitions"):
        raise ToolError("--topic-partitions cannot be used with --topic or --partitions")
    rules = [_parse_rule(rule) for rule in options.topic_partitions.split(",")]
    return lambda topic, partition: any(rule(topic, partition) for rule in rules)


def _parse_ids(text: str | None) -> set[int]:
    try:
        return {int(item) for item in text.split(",")} if text else set()
    except ValueError:
        raise ToolError(
            f"--partitions expects a comma separated list of numeric partition ids, but received: {text}"
        ) from None


def _parse_rule(text: str) -> Filter:
    match = _RULE.fullmatch(text)
    if match is None:
        raise UsageError(f"Invalid rule specification: {text}")
    topic_text, single, lower, upper = match.groups()
    pattern = TopicPattern(topic_text or ".*")
    if single:
        low, high = int(single), int(single) + 1
    else:
        low, high = int(lower or 0), int(upper or 2**31)
    return lambda topic, partition: pattern.allows(topic) and (partition is None or low <= partition < high)
