"""kafka-console-share-consumer against a running node, each in its own process."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence

import pytest

from tests.harness.tools import Tools, tool_command
from tests.harness.waiting import eventually

TOOL = "kafka-console-share-consumer"


@pytest.fixture
def queue(tools: Tools, topic: str) -> tuple[str, ...]:
    """A topic with twenty records in two partitions, and a share group that reads it from the start."""
    tools.create(topic, 2)
    tools.produce(topic, "".join(f"{number}\tvalue-{number}\n" for number in range(20)), *PARSE_KEY)
    begin = ("--add-config", "share.auto.offset.reset=earliest")
    tools.good("kafka-configs", "--alter", "--entity-type", "groups", "--entity-name", topic, *begin)
    return ("--topic", topic, "--group", topic)


PARSE_KEY = ("--reader-property", "parse.key=true")
SOON = ("--timeout-ms", "5000")
VALUES = sorted(f"value-{number}" for number in range(20))


def members(tools: Tools, group: str) -> int:
    lines = tools.good("kafka-share-groups", "--describe", "--group", group, "--members")
    return sum(line.startswith(group) for line in lines)


def test_two_consumers_of_a_group_receive_each_record_once(
    tools: Tools, topic: str, queue: Sequence[str]
) -> None:
    command = tool_command(TOOL, "--bootstrap-server", tools.bootstrap, *queue)
    consoles = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        eventually(lambda: members(tools, topic) == 2, what="two members")
        tools.produce(topic, "".join(f"{number}\tlater-{number}\n" for number in range(20)), *PARSE_KEY)
        eventually(lambda: lag(tools, topic) == 0, what="an end of the lag")
    finally:
        for console in consoles:
            console.send_signal(signal.SIGTERM)
        outputs = [console.communicate(timeout=60)[0] for console in consoles]
    later = [f"later-{number}" for number in range(20)]
    assert sorted("".join(outputs).split()) == sorted([*VALUES, *later])
    assert members(tools, topic) == 0


def lag(tools: Tools, group: str) -> int:
    """Return the number of unacknowledged records; -1 while it is unknown."""
    lines = tools.good("kafka-share-groups", "--describe", "--group", group)
    rows = [line.split() for line in lines if line.startswith(f"{group} ")]
    known = [int(row[-1]) for row in rows if row[-1].isdecimal()]
    return sum(known) if len(known) == 2 else -1


def test_unprinted_records_are_released(tools: Tools, queue: Sequence[str]) -> None:
    first = tools.run(TOOL, *queue, *SOON, "--max-messages", "3")
    assert (first.code, first.err) == (0, "Processed a total of 3 messages\n")
    rest = tools.good(TOOL, *queue, *SOON)
    assert len(first.lines) == 3
    assert sorted([*first.lines, *rest]) == VALUES


def test_rejected_records_are_archived_and_released_ones_redelivered(
    tools: Tools, queue: Sequence[str]
) -> None:
    shown = ("--formatter-property", "print.delivery=true", "--formatter-property", "print.offset=true")
    released = tools.good(TOOL, *queue, *SOON, "--release", "--max-messages", "1", *shown)
    assert released[0].split("\t")[:2] == ["Offset:0", "Delivery:1"]
    rejected = tools.good(TOOL, *queue, *SOON, "--reject", *shown)
    assert sorted(line.split("\t")[2] for line in rejected) == VALUES
    assert any(line.split("\t")[1:] == ["Delivery:2", released[0].split("\t")[2]] for line in rejected)
    assert tools.good(TOOL, *queue, "--timeout-ms", "2000") == []


def test_unformattable_record_is_an_error_or_rejected(tools: Tools, queue: Sequence[str]) -> None:
    numbers = ("--value-deserializer", "org.apache.kafka.common.serialization.LongDeserializer")
    failed = tools.run(TOOL, *queue, *SOON, *numbers)
    assert failed.code == 1
    assert "Size of data received by LongDeserializer is not 8" in failed.err
    tolerant = tools.run(TOOL, *queue, *SOON, *numbers, "--reject-message-on-error", "--max-messages", "20")
    assert tolerant.code == 0
    assert tolerant.err.count("rejecting this message") == 10
    assert tools.good(TOOL, *queue, "--timeout-ms", "2000") == []


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--group", "g"], "--topic is a required argument"),
        (
            ["--topic", "t", "--reject", "--release"],
            "At most one of --reject and --release may be specified.",
        ),
        (["--topic", "t", "--command-property", "max.poll.records=few"], "Invalid value few"),
        (["--topic", "t", "--group", "a", "--command-property", "group.id=b"], "'a', 'b'"),
    ],
)
def test_invalid_arguments_are_rejected(tools: Tools, argv: list[str], sentence: str) -> None:
    done = tools.run(TOOL, *argv)
    assert done.code == 1
    assert sentence in done.err
