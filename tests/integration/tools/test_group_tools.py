"""The tools for groups and transactions against a running node, each in its own process."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.harness.tools import Tools, run_tool, tool_command
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import produce_request
from tests.harness.wire.wire import Wire
from tests.integration.conftest import StartNode

TRANSACTIONAL = 0x10
HOUR_MS = 3_600_000


@contextmanager
def running(tools: Tools, name: str, *argv: str) -> Iterator[subprocess.Popen[str]]:
    """A tool that runs until it is stopped."""
    command = tool_command(name, "--bootstrap-server", tools.bootstrap, *argv)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def groups(tools: Tools, *argv: str) -> list[list[str]]:
    """Return the rows of a table without its header."""
    lines = tools.good("kafka-consumer-groups", *argv)
    return [line.split() for line in lines if line and not line.startswith("GROUP")]


def fill(tools: Tools, topic: str, partitions: int, records: int = 20) -> None:
    tools.create(topic, partitions)
    lines = "".join(f"{number}\tvalue-{number}\n" for number in range(records))
    tools.produce(topic, lines, "--property", "parse.key=true")


def shares(tools: Tools, group: str) -> list[int]:
    """Return the number of partitions of each member; nothing while the group rebalances."""
    states = groups(tools, "--describe", "--group", group, "--state")
    if not states or "Stable" not in states[0]:
        return []
    rows = groups(tools, "--describe", "--group", group, "--members")
    return sorted(int(row[-1]) for row in rows)


def share(tools: Tools, group: str, wanted: list[int]) -> bool:
    return shares(tools, group) == wanted


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_four_partitions_are_balanced_over_one_to_five_consumers(
    start_node: StartNode, topic: str, protocol: str, tmp_path: Path
) -> None:
    often = {"group.consumer.heartbeat.interval.ms": 300, "group.consumer.min.heartbeat.interval.ms": 300}
    tools = Tools(start_node(config=often).bootstrap_servers)
    fill(tools, topic, 4)
    settings = tmp_path / "consumer.properties"
    settings.write_text("heartbeat.interval.ms=300\n" if protocol == "classic" else "")
    named = ("--topic", topic, "--group-id", topic, "--group-protocol", protocol)
    argv = (*named, "--command-config", str(settings))
    steps = [[4], [2, 2], [1, 1, 2], [1, 1, 1, 1], [0, 1, 1, 1, 1]]
    with ExitStack() as stack:
        for wanted in steps:
            last = stack.enter_context(running(tools, "kafka-verifiable-consumer", *argv))
            eventually(partial(share, tools, topic, wanted), what=f"members with {wanted}")
        rows = groups(tools, "--describe", "--group", topic)
        assert sorted(row[2] for row in rows) == ["0", "1", "2", "3"]
        assert len({row[6] for row in rows}) == 4
        last.send_signal(signal.SIGTERM)
        eventually(lambda: shares(tools, topic) == [1, 1, 1, 1], what="the fifth to be gone")


def test_partitions_of_a_killed_consumer_are_reassigned(tools: Tools, topic: str) -> None:
    fill(tools, topic, 4)
    argv = ("--topic", topic, "--group", topic, "--command-property", "session.timeout.ms=6000")
    with ExitStack() as stack:
        one, _ = (stack.enter_context(running(tools, "kafka-console-consumer", *argv)) for _ in range(2))
        eventually(partial(share, tools, topic, [2, 2]), what="two that share")
        one.kill()
        eventually(partial(share, tools, topic, [4]), what="one that reads all")
        tools.produce(
            topic, "".join(f"{number}\tnew\n" for number in range(8)), "--property", "parse.key=true"
        )
        eventually(partial(all_read, tools, topic), what="everything to be read")


def all_read(tools: Tools, group: str) -> bool:
    rows = groups(tools, "--describe", "--group", group)
    return {row[5] for row in rows} == {"0"}


def test_lag_is_the_number_of_unread_records(tools: Tools, topic: str) -> None:
    fill(tools, topic, 1, 10)
    argv = ("--group", topic, "--from-beginning")
    assert tools.consume(topic, 4, *argv)[-1] == "value-3"
    (row,) = groups(tools, "--describe", "--group", topic)
    assert row == [topic, topic, "0", "4", "10", "6", "-", "-", "-"]
    assert tools.consume(topic, 3, *argv) == ["value-4", "value-5", "value-6"]
    (row,) = groups(tools, "--describe", "--group", topic, "--verbose")
    assert row[3:7] == ["0", "7", "10", "3"]
    assert topic in tools.good("kafka-consumer-groups", "--list")
    (line,) = (line for line in tools.good("kafka-groups", "--list") if line.startswith(topic))
    assert line.split() == [topic, "Classic", "consumer"]
    formatter = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
    internal = ("--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", "3000")
    printed = tools.good("kafka-console-consumer", *internal, "--formatter", formatter)
    mine = [record for record in map(json.loads, printed) if record["key"]["data"]["group"] == topic]
    assert [record["value"]["data"]["offset"] for record in mine] == [4, 7]


def test_consumers_without_a_group_receive_all_records(tools: Tools, topic: str) -> None:
    fill(tools, topic, 3, 12)
    for _ in range(2):
        assert len(tools.consume(topic, 12, "--from-beginning")) == 12
    with running(tools, "kafka-console-consumer", "--topic", topic):
        eventually(
            lambda: any(row[1] == topic and row[7:] for row in groups(tools, "--describe", "--all-groups")),
            what="a group that the tool made up",
        )
        (own,) = (row for row in groups(tools, "--describe", "--all-groups") if row[1:3] == [topic, "0"])
        assert own[0].startswith("console-consumer-")


def test_include_discovers_new_topics(tools: Tools, topic: str) -> None:
    fill(tools, f"{topic}-a", 1, 2)
    argv = ("--include", rf"{topic}-\w", "--group", topic, "--from-beginning", "--max-messages", "4")
    with running(tools, "kafka-console-consumer", *argv) as reader:
        eventually(lambda: shares(tools, topic) == [1], what="the reader to be at work")
        fill(tools, f"{topic}-b", 1, 2)
        assert reader.wait(timeout=60) == 0
    assert {row[1] for row in groups(tools, "--describe", "--group", topic)} == {f"{topic}-a", f"{topic}-b"}


def test_offsets_are_reset(tools: Tools, topic: str, tmp_path: Path) -> None:
    fill(tools, topic, 2, 20)
    ends = {line.rsplit(":", 1)[0]: int(line.rsplit(":", 1)[1]) for line in tools.offsets(topic)}

    def reset(*argv: str) -> dict[str, int]:
        rows = groups(tools, "--reset-offsets", "--group", topic, *argv)
        return {f"{row[1]}:{row[2]}": int(row[3]) for row in rows if len(row) == 4}

    assert reset("--topic", topic, "--to-latest", "--dry-run") == ends
    missing = tools.good("kafka-consumer-groups", "--describe", "--group", topic)
    assert missing[1].startswith("Error: Executing consumer group command failed due to ")
    assert reset("--topic", topic, "--to-latest", "--execute") == ends
    assert reset("--all-topics", "--shift-by", "-1", "--execute") == {p: end - 1 for p, end in ends.items()}
    assert reset("--topic", f"{topic}:1", "--to-offset", "1", "--execute") == {f"{topic}:1": 1}
    described = {f"{row[1]}:{row[2]}": int(row[3]) for row in groups(tools, "--describe", "--group", topic)}
    assert described == {f"{topic}:0": ends[f"{topic}:0"] - 1, f"{topic}:1": 1}
    plan = tmp_path / "plan.csv"
    exported = ("--reset-offsets", "--group", topic, "--all-topics", "--to-earliest", "--dry-run", "--export")
    plan.write_text("\n".join(line for line in tools.good("kafka-consumer-groups", *exported) if line))
    assert reset("--from-file", str(plan), "--execute") == dict.fromkeys(ends, 0)
    assert len(tools.consume(topic, 20, "--group", topic)) == 20


def test_offsets_and_groups_are_deleted(tools: Tools, topic: str) -> None:
    fill(tools, topic, 2)
    setting = ("--group", topic, "--topic", topic, "--to-latest", "--execute")
    tools.good("kafka-consumer-groups", "--reset-offsets", *setting)
    argv = ("--delete-offsets", "--group", topic, "--topic", f"{topic}:0")
    assert tools.good("kafka-consumer-groups", *argv)[0].startswith("Request succeeded for deleting offsets")
    assert [row[2] for row in groups(tools, "--describe", "--group", topic)] == ["1"]
    deleted = tools.good("kafka-consumer-groups", "--delete", "--group", topic)
    assert deleted == [f"Deletion of requested consumer groups ('{topic}') was successful."]
    assert topic not in tools.good("kafka-consumer-groups", "--list")


def test_groups_with_members_cannot_be_reset_or_deleted(tools: Tools, topic: str) -> None:
    fill(tools, topic, 1)
    with running(tools, "kafka-verifiable-consumer", "--topic", topic, "--group-id", topic):
        eventually(lambda: shares(tools, topic) == [1], what="the member to be at work")
        reset = ("--reset-offsets", "--group", topic, "--topic", topic, "--to-earliest", "--execute")
        out = tools.good("kafka-consumer-groups", *reset)
        assert "can only be reset if the group" in out[1]
        out = tools.good("kafka-consumer-groups", "--delete", "--group", topic)
        assert "GroupNotEmptyException" in out[2]
        out = tools.good("kafka-consumer-groups", "--delete-offsets", "--group", topic, "--topic", topic)
        assert "GroupSubscribedToTopicException" in out[-1]


def test_verifiable_clients_report_every_event(tools: Tools, topic: str) -> None:
    tools.create(topic)
    sent = tools.good("kafka-verifiable-producer", "--topic", topic, "--max-messages", "50")
    events = [json.loads(line) for line in sent]
    acked = [event for event in events if event["name"] == "producer_send_success"]
    assert [event["offset"] for event in acked] == list(range(50))
    assert (events[-1]["sent"], events[-1]["acked"]) == (50, 50)
    argv = ("--topic", topic, "--group-id", topic, "--max-messages", "50", "--verbose")
    read = [json.loads(line) for line in tools.good("kafka-verifiable-consumer", *argv)]
    assert [e["value"] for e in read if e["name"] == "record_data"] == [str(number) for number in range(50)]
    assert [event["name"] for event in read[:2]] == ["startup_complete", "partitions_assigned"]
    committed = [event for event in read if event["name"] == "offsets_committed"]
    assert committed[-1]["offsets"] == [{"topic": topic, "partition": 0, "offset": 50}]


def test_verifiable_consumer_reports_its_shutdown(tools: Tools, topic: str) -> None:
    fill(tools, topic, 1)
    with running(tools, "kafka-verifiable-consumer", "--topic", topic, "--group-id", topic) as consumer:
        eventually(lambda: shares(tools, topic) == [1], what="the member to be at work")
        consumer.send_signal(signal.SIGTERM)
        out, _ = consumer.communicate(timeout=60)
    names = [json.loads(line)["name"] for line in out.splitlines()]
    assert names[-3:] == ["shutdown_requested", "partitions_revoked", "shutdown_complete"]


def test_verifiable_producer_keeps_its_throughput(tools: Tools, topic: str) -> None:
    tools.create(topic)
    began = time.monotonic()
    tools.good("kafka-verifiable-producer", "--topic", topic, "--max-messages", "20", "--throughput", "20")
    assert time.monotonic() - began > 0.9


def test_consumer_perf_test_with_a_group(tools: Tools, topic: str) -> None:
    fill(tools, topic, 2, 40)
    argv = ("--topic", topic, "--num-records", "40", "--group", topic)
    _, line = tools.good("kafka-consumer-perf-test", *argv)
    cells = line.split(", ")
    assert (cells[4], int(cells[6]) > 0) == ("40", True)
    assert sum(int(row[5]) for row in groups(tools, "--describe", "--group", topic)) == 0


def test_e2e_latency_is_measured(tools: Tools, topic: str) -> None:
    argv = ("--topic", topic, "--num-records", "20", "--producer-acks", "all", "--record-size", "50")
    created, first, average, percentiles = tools.good("kafka-e2e-latency", *argv, "--num-headers", "1")
    assert created.startswith(f'Topic "{topic}" does not exist.')
    assert first.startswith("0\t")
    assert float(average.removeprefix("Avg latency: ").removesuffix(" ms")) < 400
    assert percentiles.startswith("Percentiles: 50th = ")


def table(lines: list[str]) -> list[dict[str, str]]:
    header, *rows = [[cell.strip() for cell in line.split("\t")] for line in lines]
    return [dict(zip(header, row, strict=True)) for row in rows]


def begin(tools: Tools, name: str, topic: str) -> Any:
    """A producer with an open transaction."""
    producer = Producer({"bootstrap.servers": tools.bootstrap, "transactional.id": name})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=0)
    producer.flush()
    return producer


def test_transactions_are_listed_described_and_terminated(tools: Tools, topic: str) -> None:
    tools.create(topic)
    producer = begin(tools, topic, topic)
    listing = ("list", "--transactional-id-pattern", topic)
    (listed,) = table(tools.good("kafka-transactions", *listing))
    assert (listed["TransactionalId"], listed["TransactionState"]) == (topic, "Ongoing")
    (found,) = table(tools.good("kafka-transactions", "describe", "--transactional-id", topic))
    assert (found["TopicPartitions"], found["ProducerId"]) == (f"{topic}-0", listed["ProducerId"])
    argv = ("describe-producers", "--topic", topic, "--partition", "0")
    (known,) = table(tools.good("kafka-transactions", *argv))
    assert known["CurrentTransactionStartOffset"] == "0"
    assert table(tools.good("kafka-transactions", "find-hanging", "--topic", topic)) == []
    assert tools.good("kafka-transactions", "forceTerminateTransaction", "--transactionalId", topic) == []
    (listed,) = table(tools.good("kafka-transactions", *listing))
    assert listed["TransactionState"] in ("Empty", "CompleteAbort")
    unknown = tools.run("kafka-transactions", "describe", "--transactional-id", "unknown")
    assert (unknown.code, "unknown" in unknown.err) == (1, True)
    producer.purge()


def test_hanging_transaction_is_found_and_aborted(start_node: StartNode, topic: str) -> None:
    node = start_node(config={"transaction.partition.verification.enable": False})
    tools = Tools(node.bootstrap_servers)
    tools.create(topic)
    # Without transaction verification (KIP-890) a partition accepts records of unknown transactions.
    records = batch(
        attributes=TRANSACTIONAL,
        producer_id=4711,
        producer_epoch=0,
        sequence=0,
        timestamp=time.time_ns() // 1_000_000 - HOUR_MS,
    )
    request = produce_request(topic, records)
    request.transactional_id = "lost"
    with Wire(tools.bootstrap) as wire:
        assert wire.call(request, 11).responses[0].partition_responses[0].error_code == 0
    for scope in (["--topic", topic], ["--broker-id", "1"], ["--topic", topic, "--partition", "0"]):
        (found,) = table(tools.good("kafka-transactions", "find-hanging", *scope))
        assert (found["Topic"], found["ProducerId"], found["StartOffset"]) == (topic, "4711", "0")
        assert found["Duration(min)"] == "60"
    argv = ("--topic", topic, "--partition", "0", "--start-offset", "0")
    assert tools.good("kafka-transactions", "abort", *argv) == []
    assert table(tools.good("kafka-transactions", "find-hanging", "--topic", topic)) == []


def test_unreachable_cluster_is_reported_with_a_hint() -> None:
    for name, argv in (
        ("kafka-consumer-groups", ["--list"]),
        ("kafka-transactions", ["list"]),
        ("kafka-verifiable-consumer", ["--topic", "t", "--group-id", "g"]),
    ):
        done = run_tool(name, "--bootstrap-server", "127.0.0.1:1", *argv)
        assert done.code == 1
        assert "moldau doctor --bootstrap-server 127.0.0.1:1" in done.out + done.err
