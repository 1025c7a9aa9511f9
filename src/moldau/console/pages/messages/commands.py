"""The commands and scripts that read the same records as a page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

from moldau.console.cluster.snapshot import Topic
from moldau.console.pages.messages.choice import Choice
from moldau.console.records.reading import BEGINNING, TIME
from moldau.console.web.call import Call, CopyAs
from moldau.console.web.commands import curl, json_script, page_url, records_script, tool

#: kafka-console-consumer reads one partition, or the beginning of all.
_MAX_COMMANDS: Final = 8
_TIMEOUT_MS: Final = "10000"


def copy_as(call: Call, topic: Topic, choice: Choice, begin: Mapping[int, int]) -> CopyAs:
    """Return the same choice of records; `begin` is where each partition was read from."""
    if choice.filtered:
        return CopyAs(_search(call, topic, choice), curl(call), json_script(page_url(call)))
    every = len(choice.partitions) == len(topic.partitions) > 1
    partitions = f"range({len(topic.partitions)})" if every else repr(choice.partitions)
    if choice.start.kind == BEGINNING or not begin:
        seek = ["consumer.seek_to_beginning()"]
    elif choice.start.kind == TIME:
        seek = [f"consumer.seek_to_timestamp({choice.start.at})"]
    else:
        seek = [
            f"for number, offset in {dict(begin)}.items():",
            f"    consumer.seek(TopicPartition({topic.name!r}, number), offset)",
        ]
    script = records_script(call, topic.name, partitions, choice.limit, *seek)
    return CopyAs(_commands(call, topic, choice, begin), curl(call), script)


def copy_one(call: Call, topic: str, partition: int, offset: int) -> CopyAs:
    seek = f"consumer.seek(partitions[0], {offset})"
    return CopyAs(
        _partition(call, topic, partition, offset, 1),
        curl(call),
        records_script(call, topic, f"[{partition}]", 1, seek),
    )


def _search(call: Call, topic: Topic, choice: Choice) -> str:
    """Return a search for text; no tool of Kafka evaluates expressions, so that a comment has them."""
    begin = ["--partition", str(choice.partitions[0]), "--offset", "earliest"] if choice.partition else []
    reading = tool(
        call,
        "kafka-console-consumer",
        "--topic",
        topic.name,
        *(begin or ["--from-beginning"]),
        "--timeout-ms",
        _TIMEOUT_MS,
        "--property",
        "print.key=true",
        "--property",
        "print.headers=true",
    )
    if choice.filter:
        reading += f" | grep -i -F -- {shlex.quote(choice.filter)}"
    if choice.expression:
        expression = " ".join(choice.expression.split())
        reading = f"# Before the selection by: {expression}\n{reading}"
    return reading


def _commands(call: Call, topic: Topic, choice: Choice, begin: Mapping[int, int]) -> str:
    if not begin or (choice.start.kind == BEGINNING and not choice.partition):
        limit = ("--max-messages", str(choice.limit))
        return tool(call, "kafka-console-consumer", "--topic", topic.name, "--from-beginning", *limit)
    lines = [
        _partition(call, topic.name, index, begin[index], choice.limit)
        for index in sorted(begin)[:_MAX_COMMANDS]
    ]
    if len(begin) > _MAX_COMMANDS:
        lines.append(f"# … and so on for the other {len(begin) - _MAX_COMMANDS} partitions")
    return "\n".join(lines)


def _partition(call: Call, topic: str, partition: int, offset: int, limit: int) -> str:
    return tool(
        call,
        "kafka-console-consumer",
        "--topic",
        topic,
        "--partition",
        str(partition),
        "--offset",
        str(offset),
        "--max-messages",
        str(limit),
        "--timeout-ms",
        _TIMEOUT_MS,
    )
