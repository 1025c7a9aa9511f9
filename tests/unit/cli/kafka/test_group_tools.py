"""The other tools about groups and transactions: command lines, filters, tables, events."""

from __future__ import annotations

import argparse
import itertools
import json
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.cli.kafka import groups
from moldau.cli.kafka.console.reading import Pattern, ReadPlan
from moldau.cli.kafka.perf import e2e_latency
from moldau.cli.kafka.transactions import command as transactions
from moldau.cli.kafka.verifiable import consumer as verifiable_consumer
from moldau.cli.kafka.verifiable import producer as verifiable_producer
from moldau.cli.shared.java import java_error, print_columns
from moldau.cli.shared.json_io import print_event
from moldau.cli.shared.tool import ToolError
from moldau.client.admin.group_types import GroupListing


def choose(*argv: str) -> argparse.Namespace:
    return groups._parser().parse(["--list", *argv])


@pytest.mark.parametrize(
    ("argv", "left"),
    [
        ([], {"classic", "simple", "new", "connect", "share"}),
        (["--consumer"], {"classic", "simple", "new"}),
        (["--share"], {"share"}),
        (["--streams"], set()),
        (["--group-type", "Classic"], {"classic", "simple", "connect"}),
        (["--group-type", "classic", "--protocol", "connect"], {"connect"}),
        (["--protocol", "consumer"], {"classic", "new"}),
    ],
)
def test_which_groups_are_listed(argv: list[str], left: set[str]) -> None:
    listed = [
        GroupListing("classic", "consumer", "Stable", "Classic"),
        GroupListing("simple", "", "Empty", "Classic"),
        GroupListing("new", "consumer", "Stable", "Consumer"),
        GroupListing("connect", "connect", "Stable", "Classic"),
        GroupListing("share", "share", "Stable", "Share"),
    ]
    options = choose(*argv)
    assert {group.group_id for group in listed if groups.admitted(group, options)} == left


@pytest.mark.parametrize(
    ("tool", "argv", "sentence"),
    [
        (groups, [], "Command must include exactly one action: --list."),
        (groups, ["--list", "--group-type", "x"], "--group-type must be a valid group type."),
        (groups, ["--list", "--share", "--consumer"], 'can\'t be used with option "[share]"'),
        (verifiable_producer, [], 'Missing required argument "[topic]"'),
        (verifiable_producer, ["--topic", "t", "--acks", "7"], "--acks: invalid choice: '7'"),
        (verifiable_consumer, ["--topic", "t"], 'Missing required argument "[group-id]"'),
        (
            verifiable_consumer,
            ["--topic", "t", "--group-id", "g", "--group-protocol", "x"],
            "x is not one of classic, consumer",
        ),
        (
            verifiable_consumer,
            ["--topic", "t", "--group-id", "g", "--command-config", "a", "--consumer.config", "b"],
            "Options --consumer.config and --command-config are mutually exclusive.",
        ),
        (e2e_latency, ["--topic", "t", "--producer-acks", "1"], 'Missing required argument "[num-records]"'),
        (transactions, [], "the following arguments are required: COMMAND"),
        (transactions, ["describe"], "the following arguments are required: --transactional-id"),
        (
            transactions,
            ["describe", "--transactional-id", "x", "--bogus"],
            "bogus is not a recognized option",
        ),
    ],
)
def test_command_lines_that_make_no_sense(
    tool: Any, argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tool.main(["--bootstrap-server", "127.0.0.1:1", *argv]) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("--num-records", "0", "Value for --num-records must be a positive integer."),
        ("--record-size", "-1", "Value for --record-size must be a non-negative integer."),
        ("--record-key-size", "-1", "Value for --record-key-size must be a non-negative integer."),
        ("--record-header-size", "-2", "must be a non-negative integer or -1 for null header value."),
        ("--num-headers", "-1", "Value for --num-headers must be a non-negative integer."),
        ("--producer-acks", "0", "Invalid value for --producer-acks."),
    ],
)
def test_what_cannot_be_measured(
    name: str, value: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = {"--bootstrap-server": "127.0.0.1:1", "--topic": "t", "--num-records": "1"}
    usual |= {"--producer-acks": "1", "--record-size": "1", name: value}
    assert e2e_latency.main([word for pair in usual.items() for word in pair]) == 1
    assert sentence in capsys.readouterr().err


def test_latency_takes_the_arguments_of_old(capsys: pytest.CaptureFixture[str]) -> None:
    words = e2e_latency.named_arguments(["b:1", "t", "10", "all", "100", "file"])
    assert words[:4] == ["--bootstrap-server", "b:1", "--topic", "t"]
    assert words[-2:] == ["--command-config", "file"]
    assert capsys.readouterr().out.startswith("WARNING: ")
    assert e2e_latency.named_arguments(["--topic", "t"]) == ["--topic", "t"]
    assert e2e_latency.main(["b:1", "t"]) == 1


def test_latency_notices_another_record() -> None:
    e2e_latency.compare((None, b"v", [("h", None)]), (None, b"v", [("h", None)]))
    with pytest.raises(ToolError, match="message value read"):
        e2e_latency.compare((None, b"v", []), (None, b"w", []))


def test_keys_come_round_again() -> None:
    assert list(itertools.islice(verifiable_producer.repeating_keys(3), 5)) == ["0", "1", "2", "0", "1"]
    assert list(itertools.islice(verifiable_producer.repeating_keys(None), 2)) == [None, None]


def test_events_are_lines_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_event("told", key=None, text="žluť")
    line = capsys.readouterr().out
    assert line.endswith(',"name":"told","key":null,"text":"žluť"}\n')
    assert json.loads(line)["timestamp"] > 1_000_000_000_000


def test_errors_by_the_names_java_gives_them() -> None:
    names = {
        ErrorCode.GROUP_ID_NOT_FOUND: "GroupIdNotFoundException",
        ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
        ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
        ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
        ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "UnknownTopicOrPartitionException",
    }
    for code, name in names.items():
        assert java_error(KafkaError(code, "why")) == f"org.apache.kafka.common.errors.{name}: why"


def test_columns_are_as_wide_as_they_must_be(capsys: pytest.CaptureFixture[str]) -> None:
    print_columns(("A", "Long"), [("wide", "1"), ("x", "2")])
    assert capsys.readouterr().out == "A   \tLong\t\nwide\t1   \t\nx   \t2   \t\n"


def test_patterns_pass_over_internal_topics() -> None:
    def pattern(text: str, **properties: str) -> Pattern:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        return Pattern(ReadPlan(None, text, None, "earliest", "g", named))

    assert pattern(r"or\w+").admits("orders")
    assert not pattern("or").admits("orders")
    assert not pattern(".*").admits("__consumer_offsets")
    assert pattern(".*", exclude_internal_topics="false").admits("__consumer_offsets")
