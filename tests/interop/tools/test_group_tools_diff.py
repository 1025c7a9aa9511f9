"""Tools for groups and transactions compared with Java's; see `harness/apache/tool_pairs.py`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.harness.apache.tool_pairs import Tools
from tests.harness.tools import run_tool
from tests.harness.waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

GROUP = ("--group", "{topic}-g")
TOPIC = ("--topic", "{topic}")


@pytest.fixture(scope="module")
def filled(tools: Tools) -> Tools:
    """Topics of three partitions with thirty records, and a group that has read two of each partition."""
    tools.create("filled", 3)
    lines = "".join(f"{number}\tvalue\n" for number in range(30))
    keyed = ("--topic", "{topic}", "--reader-property", "parse.key=true")
    tools.same("kafka-console-producer", *keyed, topic="filled", stdin=lines)
    to_two = ("--reset-offsets", *GROUP, *TOPIC, "--to-offset", "2", "--execute")
    tools.same_lines("kafka-consumer-groups", *to_two, topic="filled")
    return tools


def of_groups(tools: Tools) -> Callable[..., list[str]]:
    return lambda *argv: tools.same_lines("kafka-consumer-groups", *argv, topic="filled")


def test_groups_without_members_match_java(filled: Tools) -> None:
    groups = of_groups(filled)
    assert len(groups("--describe", *GROUP)) == 5
    assert any("LEADER-EPOCH" in line for line in groups("--describe", *GROUP, "--verbose"))
    groups("--describe", *GROUP, "--offsets")
    for part in ("--members", "--state"):
        groups("--describe", *GROUP, part)
        groups("--describe", *GROUP, part, "--verbose")
    groups("--describe", "--group", "filled-ours-g", "--group", "filled-java-g")
    groups("--describe", "--all-groups")
    assert "filled-x-g" in groups("--list")
    for filters in (["--state"], ["--type"], ["--state", "--type"], ["--state", "empty,Stable"]):
        groups("--list", *filters)
    groups("--list", "--type", "classic", "--state", "dead")
    groups("--list", "--timeout", "5000")


def test_groups_of_every_type_match_java(filled: Tools) -> None:
    for argv in (
        [],
        ["--consumer"],
        ["--share"],
        ["--group-type", "classic"],
        ["--protocol", "consumer"],
        ["--group-type", "consumer", "--protocol", "consumer"],
    ):
        filled.same_lines("kafka-groups", "--list", *argv)
    for argv in ([], ["--list", "--share", "--consumer"], ["--list", "--group-type", "x"]):
        filled.same_failure("kafka-groups", *argv)


@pytest.mark.parametrize(
    "argv",
    [
        ["--to-earliest"],
        ["--to-latest"],
        ["--to-current"],
        ["--to-offset", "1"],
        ["--to-offset", "99"],
        ["--to-offset", "-3"],
        ["--shift-by", "1"],
        ["--shift-by", "-9"],
        ["--to-datetime", "2020-01-31T10:00:00.000"],
        ["--to-datetime", "2099-01-31T10:00:00.000+01:00"],
        ["--by-duration", "PT5M"],
        ["--by-duration", "PT0S"],
        ["--to-earliest", "--export"],
    ],
    ids=" ".join,
)
def test_offset_resets_are_planned(filled: Tools, argv: list[str]) -> None:
    groups = of_groups(filled)
    assert groups("--reset-offsets", *GROUP, *TOPIC, *argv, "--dry-run")
    groups("--reset-offsets", *GROUP, "--all-topics", *argv, "--dry-run")


def test_offset_resets_are_executed(filled: Tools, tmp_path: Path) -> None:
    groups = of_groups(filled)
    new = ("--reset-offsets", "--group", "{topic}-new")
    groups(*new, "--topic", "{topic}:0,1", "--to-latest", "--execute")
    groups("--describe", "--group", "{topic}-new")
    groups(*new, *TOPIC, "--to-current", "--execute", "--export")
    for name in ("filled-ours", "filled-java"):
        (tmp_path / f"{name}.csv").write_text(f"{name},0,1\n{name},2,0\n")
        (tmp_path / f"{name}.all.csv").write_text(f"{name}-new,{name},1,1\n{name}-g,{name},2,3\n")
    groups(*new, "--from-file", str(tmp_path / "{topic}.csv"), "--execute")
    groups("--describe", "--group", "{topic}-new")
    several = ("--reset-offsets", *GROUP, "--group", "{topic}-new")
    groups(*several, "--from-file", str(tmp_path / "{topic}.all.csv"), "--dry-run", "--export")
    filled.same_error(
        "kafka-consumer-groups",
        "--reset-offsets",
        "--group",
        "{topic}-other",
        "--group",
        "{topic}-g",
        "--from-file",
        str(tmp_path / "{topic}.all.csv"),
        "--dry-run",
        topic="filled",
    )
    groups("--delete-offsets", "--group", "{topic}-new", "--topic", "{topic}:0")
    groups("--describe", "--group", "{topic}-new")
    groups("--delete-offsets", "--group", "{topic}-new", *TOPIC)
    groups("--delete", "--group", "{topic}-new")


def test_failures_of_group_tools_match_java(filled: Tools) -> None:
    def error(*argv: str) -> str:
        return filled.same_error("kafka-consumer-groups", *argv, topic="filled")

    error("--describe", "--group", "nope")
    error("--describe", *GROUP, "--group", "nope", "--state")
    error("--delete-offsets", "--group", "nope", *TOPIC)
    error("--reset-offsets", *GROUP, "--topic", "{topic}:0,7", "--to-latest", "--dry-run")
    both = filled.run("kafka-consumer-groups", "--delete", "--group", "nope")
    assert both.ours == both.java


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--list", "--describe"],
        ["--list", "--state", "asleep"],
        ["--list", "--type", "share"],
        ["--list", "--members"],
        ["--list", "--group", "g"],
        ["--list", "--topic", "t"],
        ["--describe", "--group", "g", "--all-groups"],
        ["--describe", "--group", "g", "--state", "empty"],
        ["--describe", "--group", "g", "--members", "--offsets"],
        ["--delete", "--group", "g", "--topic", "t"],
        ["--reset-offsets", "--group", "g", "--dry-run", "--execute"],
        ["--reset-offsets", "--group", "g", "--dry-run", "--to-latest"],
        ["--reset-offsets", "--group", "g", "--dry-run", "--topic", "t:a", "--to-latest"],
        ["--reset-offsets", "--group", "g", "--dry-run", "--topic", "t:1:2", "--to-latest"],
        ["--reset-offsets", "--group", "g", "--dry-run", "--topic", "filled-ours", "--shift-by", "2"],
    ],
    ids=" ".join,
)
def test_invalid_command_lines_of_group_tools_match_java(filled: Tools, argv: list[str]) -> None:
    both = filled.run("kafka-consumer-groups", *argv)
    assert (both.ours.code, both.java.code) == (1, 1), both
    # Java lists options and names in hash order.
    sentence = re.split(r"(?:are|options): ", both.ours.err.splitlines()[0])[0]
    assert sentence in both.java.out + both.java.err


@contextmanager
def members(tools: Tools, group: str, topic: str, count: int, **settings: str) -> Iterator[list[Consumer]]:
    """Start a stable group with this many members."""
    more = {name.replace("_", "."): value for name, value in settings.items()}
    consumers = [
        Consumer(
            {
                "bootstrap.servers": tools.node.bootstrap_servers,
                "group.id": group,
                "client.id": f"app-{number}",
                "auto.offset.reset": "earliest",
                **more,
            }
        )
        for number in range(count)
    ]

    def settled() -> bool:
        for consumer in consumers:
            consumer.poll(0.05)
        return sum(len(consumer.assignment()) for consumer in consumers) == 3 and all(
            consumer.assignment() for consumer in consumers
        )

    try:
        for consumer in consumers:
            consumer.subscribe([topic])
        eventually(settled, what="members with partitions")
        eventually(lambda: at_rest(tools, group), what="a stable group")
        yield consumers
    finally:
        for consumer in consumers:
            consumer.close()


def at_rest(tools: Tools, group: str) -> bool:
    argv = ("--bootstrap-server", tools.node.bootstrap_servers, "--describe", "--group", group, "--state")
    return " Stable " in run_tool("kafka-consumer-groups", *argv).out


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_with_members_match_java(filled: Tools, protocol: str) -> None:
    group, topic = f"live-{protocol}", "filled-ours"
    named = ("--group", group)
    with members(filled, group, topic, 2, group_protocol=protocol) as consumers:
        for consumer in consumers:
            read = [TopicPartition(topic, each.partition, 1) for each in consumer.assignment()]
            consumer.commit(offsets=read, asynchronous=False)

        def groups(*argv: str) -> list[str]:
            return filled.same_lines("kafka-consumer-groups", *argv)

        for part in ([], ["--members"], ["--state"]):
            assert groups("--describe", *named, *part)
            groups("--describe", *named, *part, "--verbose")
        groups("--list", "--state", "stable", "--type")
        filled.same_lines("kafka-groups", "--list")
        reset = ("--reset-offsets", *named, "--topic", topic, "--to-latest", "--execute")
        assert "is inactive, but the current state is Stable" in filled.same_error(
            "kafka-consumer-groups", *reset
        )
        filled.same_error("kafka-consumer-groups", "--delete", *named)
        error = filled.same_error("kafka-consumer-groups", "--delete-offsets", *named, "--topic", topic)
        assert error == "Error: Encountered some partition-level error, see the follow-up details."
    filled.same_lines("kafka-consumer-groups", "--describe", *named)


def test_static_members_match_java(filled: Tools) -> None:
    with members(filled, "static", "filled-ours", 1, group_instance_id="one"):
        described = filled.same_lines("kafka-consumer-groups", "--describe", "--group", "static", "--members")
        assert "GROUP-INSTANCE-ID" in described[1]


def events(lines: list[str]) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in lines if line.startswith("{")]
    for event in found:
        event.pop("timestamp")
        event.pop("avg_throughput", None)
    return found


def test_verifiable_clients_match_java(tools: Tools) -> None:
    tools.create("verifiable", 1)
    sent = ("--topic", "{topic}", "--max-messages", "5", "--repeating-keys", "3", "--value-prefix", "4")
    both = tools.run("kafka-verifiable-producer", *sent, topic="verifiable")
    assert (both.ours.code, both.java.code) == (0, 0)
    assert events(both.ours.lines) == events(both.java.lines)
    read = ("--topic", "{topic}", "--group-id", "{topic}-g", "--max-messages", "5", "--verbose")
    both = tools.run("kafka-verifiable-consumer", *read, topic="verifiable")
    assert (both.ours.code, both.java.code) == (0, 0)
    assert events(both.ours.lines) == events(both.java.lines)
    for run in both:
        assert run.lines[0].startswith('{"timestamp":')
    tools.same_lines("kafka-consumer-groups", "--describe", "--group", "{topic}-g", topic="verifiable")
    for name in ("kafka-verifiable-producer", "kafka-verifiable-consumer"):
        both = tools.run(name, "--topic", "t", "--bogus")
        assert (both.ours.code, both.java.code) == (1, 1)


def test_end_to_end_latency_tool_matches_java(tools: Tools) -> None:
    usual = {"--topic": "{topic}", "--num-records": "3", "--producer-acks": "all", "--record-size": "10"}

    def with_(**more: str) -> list[str]:
        changed = {f"--{name.replace('_', '-')}": value for name, value in more.items()}
        return [word for pair in (usual | changed).items() for word in pair]

    headers = with_(num_headers="2", record_header_key_size="3", record_header_size="4")
    both = tools.run("kafka-e2e-latency", *headers, topic="latency")
    assert (both.ours.code, both.java.code) == (0, 0), both
    numbers = re.compile(r"[\d.]+")
    assert [numbers.sub("N", line) for line in both.ours.lines] == [
        numbers.sub("N", line) for line in both.java.lines
    ]
    for bad in ({"num_records": "0"}, {"producer_acks": "0"}, {"record_size": "-1"}, {"num_headers": "-1"}):
        tools.same_failure("kafka-e2e-latency", *with_(**bad), topic="latency")


def test_console_consumers_in_groups_match_java(filled: Tools) -> None:
    read = (*TOPIC, "--group", "{topic}-console", "--from-beginning")
    filled.same_lines("kafka-console-consumer", *read, "--max-messages", "30", topic="filled")
    filled.same_lines("kafka-console-consumer", *read, "--timeout-ms", "2500", topic="filled")
    described = of_groups(filled)("--describe", "--group", "{topic}-console")
    assert all(line.split()[5] == "0" for line in described[2:])
    pattern = (
        "--include",
        "f.lled-\\w+",
        "--from-beginning",
        "--max-messages",
        "60",
        "--timeout-ms",
        "15000",
    )
    filled.same_lines("kafka-console-consumer", *pattern)
    filled.same_lines(
        "kafka-console-consumer", *TOPIC, "--from-beginning", "--max-messages", "30", topic="filled"
    )
    twice = ("--group", "a", "--command-property", "group.id=b")
    both = filled.run("kafka-console-consumer", "--topic", "x", *twice)
    assert (both.ours.code, both.java.code) == (1, 1)
    assert "The group ids provided in different places" in both.java.err


def formatted(tools: Tools, topic: str, formatter: str) -> list[list[str]]:
    """Return the output of both tools for an internal topic, without the tools' own records."""
    read = ("--topic", topic, "--from-beginning", "--timeout-ms", "3000")
    both = tools.run(
        "kafka-console-consumer", *read, "--formatter", f"org.apache.kafka.tools.consumer.{formatter}"
    )
    # Java's tool omits the line ends.
    lines = [run.out.replace("}{", "}\n{").splitlines() for run in both]
    return [sorted(line for line in each if "console-consumer-" not in line) for each in lines]


def test_formatted_offsets_topic_matches_java(filled: Tools) -> None:
    with members(filled, "written", "filled-ours", 1):
        pass
    for formatter in ("OffsetsMessageFormatter", "GroupMetadataMessageFormatter"):
        ours, java = formatted(filled, "__consumer_offsets", formatter)
        assert ours
        assert ours == java


@pytest.fixture(scope="module")
def transactions(tools: Tools) -> Iterator[Tools]:
    """Make a completed and an open transaction."""
    tools.create("tx", 2)
    address = {"bootstrap.servers": tools.node.bootstrap_servers}
    done = Producer({**address, "transactional.id": "tx-done"})
    done.init_transactions()
    done.begin_transaction()
    done.produce("tx-ours", b"a", partition=0)
    done.commit_transaction()
    under_way = Producer({**address, "transactional.id": "tx-open", "transaction.timeout.ms": "600000"})
    under_way.init_transactions()
    under_way.begin_transaction()
    under_way.produce("tx-ours", b"b", partition=0)
    under_way.flush()
    yield tools
    under_way.purge()


def test_transactions_tool_matches_java(transactions: Tools) -> None:
    def same(*argv: str) -> list[str]:
        return transactions.same_lines("kafka-transactions", *argv)

    assert len(same("list")) >= 3
    same("list", "--duration-filter", "1000000")
    same("list", "--transactional-id-pattern", "tx-o.*")
    same("describe-producers", "--topic", "tx-ours", "--partition", "0")
    same("describe-producers", "--topic", "tx-ours", "--partition", "0", "--broker-id", "1")
    same("find-hanging", "--topic", "tx-ours", "--max-transaction-timeout", "0")
    same("find-hanging", "--broker-id", "1")
    for name in ("tx-done", "tx-open"):
        both = transactions.run("kafka-transactions", "describe", "--transactional-id", name)
        without_duration = [
            [cell for number, cell in enumerate(line.split("\t")) if number != 7]
            for run in both
            for line in run.lines
        ]
        assert without_duration[:2] == without_duration[2:]


def test_formatted_transaction_log_matches_java(transactions: Tools) -> None:
    ours, java = formatted(transactions, "__transaction_state", "TransactionLogMessageFormatter")
    assert ours
    assert ours == java


@pytest.mark.parametrize(
    "argv",
    [
        ["describe", "--transactional-id", "nope"],
        ["find-hanging"],
        ["find-hanging", "--partition", "0", "--broker-id", "1"],
        ["abort", "--topic", "tx-ours", "--partition", "0"],
        ["abort", "--topic", "tx-ours", "--partition", "0", "--start-offset", "77"],
        ["abort", "--topic", "tx-ours", "--partition", "0", "--producer-id", "5"],
        ["abort", "--topic", "tx-ours", "--partition", "0", "--producer-id", "5", "--producer-epoch", "1"],
        ["describe"],
        ["bogus"],
    ],
    ids=" ".join,
)
def test_failures_of_transaction_tools_match_java(transactions: Tools, argv: list[str]) -> None:
    both = transactions.run("kafka-transactions", *argv)
    assert (both.ours.code, both.java.code) == (1, 1), both
    if argv[0] != "bogus" and len(argv) > 1:
        said, java = both.ours.err.splitlines()[0], both.java.err.splitlines()[0]
        assert said.partition("`: ")[0] == java.partition("`: ")[0]


def test_aborting_transactions_matches_java(tools: Tools) -> None:
    tools.create("ended", 1)
    for name in ("ours", "java"):
        producer = Producer(
            {"bootstrap.servers": tools.node.bootstrap_servers, "transactional.id": f"ended-{name}"}
        )
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(f"ended-{name}", b"x")
        producer.flush()
        producer.purge()

    def same(*argv: str) -> list[str]:
        return tools.same_lines("kafka-transactions", *argv, topic="ended")

    same("forceTerminateTransaction", "--transactionalId", "{topic}")
    shown = same("list", "--transactional-id-pattern", "ended-.*")
    assert not any("Ongoing" in line for line in shown)
