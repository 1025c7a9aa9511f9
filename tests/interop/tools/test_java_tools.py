"""Kafka's Java tools give the same output for Moldau as for Apache Kafka.

Values that must differ (addresses, ids, times, folders, sizes) are replaced before the comparison.
"""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

import pytest

from tests.harness.apache.node import ApacheCluster
from tests.interop.conftest import JavaTool, Node

pytestmark = pytest.mark.interop

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"

_REPLACED = [
    (re.compile(r"TopicId: \S+"), "TopicId: ID"),
    (re.compile(r"\b[A-Za-z0-9_-]{22}\b"), "UUID"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"\[\d{4}-\d\d-\d\d [\d:,]+\]"), "[TIME]"),
    (re.compile(r"/tmp/\S*?/logs"), "LOGS"),
    (re.compile(r"CreateTime:\d+"), "CreateTime:T"),
]


class Both:
    """Run a tool against both brokers and compare its output."""

    def __init__(self, tool: JavaTool, apache: ApacheCluster, moldau: Node) -> None:
        self._tool = tool
        self._brokers = (apache, moldau)

    def run(self, main: str, *arguments: str, stdin: str = "", flag: str = "--bootstrap-server") -> list[str]:
        """Return the output and exit code for Apache Kafka and for Moldau."""
        answers = []
        for broker in self._brokers:
            output, code = self._tool(main, flag, broker.bootstrap_servers, *arguments, stdin=stdin)
            answers.append(f"{plain(output)}exit code {code}")
        return answers

    def same(self, main: str, *arguments: str, stdin: str = "", flag: str = "--bootstrap-server") -> str:
        """Require the same output for both and return it."""
        theirs, ours = self.run(main, *arguments, stdin=stdin, flag=flag)
        assert ours == theirs
        return ours


def plain(output: str) -> str:
    for pattern, word in _REPLACED:
        output = pattern.sub(word, output)
    return output


@pytest.fixture
def both(tool: JavaTool, apache: ApacheCluster, moldau: Node) -> Both:
    return Both(tool, apache, moldau)


@pytest.fixture
def topic() -> str:
    return f"tools.{uuid.uuid4().hex[:6]}"


def create(both: Both, topic: str, *arguments: str) -> None:
    said = both.same(TOPICS, "--create", "--topic", topic, *arguments)
    assert said.endswith("exit code 0")


def produce(both: Both, topic: str, lines: str, *arguments: str) -> None:
    both.same(PRODUCER, "--topic", topic, *arguments, stdin=lines)


def test_topic_command(both: Both, topic: str) -> None:
    create(both, topic, "--partitions", "3", "--config", "retention.ms=86400000")
    said = both.same(TOPICS, "--describe", "--topic", topic)
    assert "PartitionCount: 3" in said
    assert "retention.ms=86400000" in said
    both.same(TOPICS, "--alter", "--topic", topic, "--partitions", "5")
    assert "Partition: 4" in both.same(TOPICS, "--describe", "--topic", topic)
    for broker_says in both.run(TOPICS, "--list"):
        assert topic in broker_says.splitlines()
    both.same(TOPICS, "--delete", "--topic", topic)
    for broker_says in both.run(TOPICS, "--list"):
        assert topic not in broker_says.splitlines()


def test_topic_command_refused(both: Both, topic: str) -> None:
    create(both, topic)
    for arguments in (
        ("--create", "--topic", topic),
        ("--create", "--topic", f"{topic}-x", "--partitions", "0"),
        ("--create", "--topic", f"{topic}-x", "--replication-factor", "3"),
        ("--create", "--topic", f"{topic}-x", "--config", "no.such=1"),
        ("--create", "--topic", "a/b"),
        ("--alter", "--topic", topic, "--partitions", "1"),
        ("--describe", "--topic", f"{topic}-unknown"),
        ("--delete", "--topic", f"{topic}-unknown"),
    ):
        theirs, ours = both.run(TOPICS, *arguments)
        assert first_words(ours) == first_words(theirs)


def first_words(said: str) -> tuple[str, str]:
    """Return the error type and the exit code: the message may be our own."""
    kind = re.search(r"\w+Exception", said)
    return kind.group() if kind else "", said.splitlines()[-1]


def test_topic_command_filters(both: Both, topic: str) -> None:
    create(both, topic, "--config", "cleanup.policy=compact")
    for filter_flag in (
        "--under-replicated-partitions",
        "--unavailable-partitions",
        "--at-min-isr-partitions",
    ):
        both.same(TOPICS, "--describe", "--topic", topic, filter_flag)
    both.same(TOPICS, "--describe", "--topic", topic, "--topics-with-overrides")


def test_config_command_for_topics(both: Both, topic: str) -> None:
    create(both, topic)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    both.same(
        CONFIGS,
        *entity,
        "--alter",
        "--add-config",
        "max.message.bytes=128000,cleanup.policy=[compact,delete]",
    )
    said = both.same(CONFIGS, *entity, "--describe")
    assert "max.message.bytes=128000" in said
    both.same(CONFIGS, *entity, "--alter", "--delete-config", "max.message.bytes")
    assert "max.message.bytes" not in both.same(CONFIGS, *entity, "--describe")
    both.same(CONFIGS, *entity, "--describe", "--all")


def test_config_command_for_brokers(both: Both) -> None:
    entity = ("--entity-type", "brokers", "--entity-name", "1")
    both.same(CONFIGS, *entity, "--alter", "--add-config", "background.threads=20")
    assert "background.threads=20" in both.same(CONFIGS, *entity, "--describe")
    both.same(CONFIGS, *entity, "--alter", "--delete-config", "background.threads")
    everyone = ("--entity-type", "brokers", "--entity-default")
    both.same(CONFIGS, *everyone, "--alter", "--add-config", "log.cleaner.threads=2")
    both.same(CONFIGS, *everyone, "--describe")
    both.same(CONFIGS, *everyone, "--alter", "--delete-config", "log.cleaner.threads")


def test_config_command_lists_every_broker_config(both: Both) -> None:
    said = both.run(CONFIGS, "--entity-type", "brokers", "--entity-name", "1", "--describe", "--all")
    theirs, ours = (set(re.findall(r"^  ([\w.]+)=", answer, re.MULTILINE)) for answer in said)
    assert ours == theirs


def test_config_command_for_clients(both: Both, topic: str) -> None:
    entity = ("--entity-type", "clients", "--entity-name", topic)
    both.same(CONFIGS, *entity, "--alter", "--add-config", "producer_byte_rate=1000000000")
    assert "producer_byte_rate" in both.same(CONFIGS, *entity, "--describe")
    both.same(CONFIGS, *entity, "--alter", "--delete-config", "producer_byte_rate")


def test_config_command_refused(both: Both, topic: str) -> None:
    create(both, topic)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    for change in ("no.such=1", "retention.ms=soon", "segment.bytes=1"):
        theirs, ours = both.run(CONFIGS, *entity, "--alter", "--add-config", change)
        assert ours.splitlines()[-1] == theirs.splitlines()[-1] == "exit code 1"


def test_console_producer_and_consumer(both: Both, topic: str) -> None:
    create(both, topic)
    parsing = [
        f"--reader-property={name}" for name in ("parse.key=true", "key.separator=,", "parse.headers=true")
    ]
    lines = "trace:1,a:b\tkey1,value one\nh:x\tkey2,\n"
    produce(both, topic, lines, *parsing)
    shown = ("print.key", "print.headers", "print.partition", "print.offset", "print.timestamp")
    printing = [f"--formatter-property={name}=true" for name in shown]
    said = both.same(
        CONSUMER,
        "--topic",
        topic,
        "--partition",
        "0",
        "--offset",
        "earliest",
        "--max-messages",
        "2",
        *printing,
    )
    assert "key1\tvalue one" in said


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_console_with_codecs(both: Both, topic: str, codec: str) -> None:
    create(both, topic)
    lines = "".join(f"line {n} and some words more\n" for n in range(200))
    produce(both, topic, lines, "--compression-codec", codec)
    said = both.same(
        CONSUMER, "--topic", topic, "--partition", "0", "--offset", "50", "--max-messages", "150"
    )
    assert said.startswith("line 50 ")


def test_get_offset_shell(both: Both, topic: str) -> None:
    create(both, topic, "--partitions", "2")
    # Keys, so that the records have the same partitions on both.
    keyed = ("--reader-property=parse.key=true", "--reader-property=key.separator=:")
    produce(both, topic, "a:one\nb:two\nc:three\n", *keyed)
    for time in ("-1", "-2", "earliest", "latest", "-4", "-5", "1000"):
        both.same(OFFSETS, "--topic", topic, "--time", time)
    both.same(OFFSETS, "--topic-partitions", f"{topic}:0")
    both.same(OFFSETS, "--topic", "no.such.topic")


def test_delete_records_command(both: Both, topic: str, tmp_path: Path) -> None:
    create(both, topic)
    produce(both, topic, "".join(f"{n}\n" for n in range(10)))
    wanted = tmp_path / "offsets.json"
    wanted.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 4}]})
    )
    main = "org.apache.kafka.tools.DeleteRecordsCommand"
    assert "low_watermark: 4" in both.same(main, "--offset-json-file", str(wanted))
    assert f"{topic}:0:4" in both.same(OFFSETS, "--topic", topic, "--time", "-2")


def test_log_dirs_command(both: Both, topic: str) -> None:
    create(both, topic, "--partitions", "2")
    produce(both, topic, "hello\n")
    main = "org.apache.kafka.tools.LogDirsCommand"
    theirs, ours = both.run(main, "--describe", "--topic-list", topic, "--broker-list", "1")
    described = [json.loads(said.splitlines()[-2]) for said in (theirs, ours)]
    for answer in described:
        for folder in answer["brokers"][0]["logDirs"]:
            folder["partitions"].sort(key=lambda partition: partition["partition"])
            assert folder["partitions"][0]["size"] + folder["partitions"][1]["size"] > 60
            for partition in folder["partitions"]:
                partition["size"] = "SIZE"
    assert described[1] == described[0]


def test_cluster_tool(both: Both) -> None:
    main = "org.apache.kafka.tools.ClusterTool"
    for command in (["cluster-id"], ["list-endpoints"]):
        answers = []
        for broker in both._brokers:
            output, code = both._tool(main, *command, "--bootstrap-server", broker.bootstrap_servers)
            port = str(broker.port)
            answers.append((re.sub(r" +", " ", plain(output).replace(port, "PORT")), code))
        assert answers[1] == answers[0]


def test_broker_api_versions_command(both: Both) -> None:
    """Every announced API has Apache Kafka's versions."""
    said = both.run("org.apache.kafka.tools.BrokerApiVersionsCommand")
    theirs, ours = (dict(re.findall(r"^\t(\w+\(\d+\)): ([^\[\n]*)", answer, re.MULTILINE)) for answer in said)
    announced = {name: versions for name, versions in ours.items() if "UNSUPPORTED" not in versions}
    assert announced, said[1]
    assert announced == {name: theirs.get(name) for name in announced}


def test_metadata_quorum_command(both: Both) -> None:
    main = "org.apache.kafka.tools.MetadataQuorumCommand"
    for report in ("--status", "--replication"):
        theirs, ours = both.run(main, "describe", report)
        assert numbers_out(ours) == numbers_out(theirs)


def numbers_out(said: str) -> str:
    """Replace offsets, epochs, times and ports, which differ."""
    said = re.sub(r"-?\d+( ms ago)?", "N", said)
    return re.sub(r"[ \t]+", " ", said)


def test_feature_command(both: Both) -> None:
    said = both.run("org.apache.kafka.tools.FeatureCommand", "describe")
    theirs, ours = (
        dict(re.findall(r"Feature: (\S+)\s+(SupportedMinVersion: \S+\s+SupportedMaxVersion: \S+)", answer))
        for answer in said
    )
    assert ours["metadata.version"] == theirs["metadata.version"]
    assert ours["kraft.version"] == theirs["kraft.version"]
    assert set(ours) <= set(theirs)


@pytest.mark.parametrize("acks", ["1", "all"])
def test_producer_performance(both: Both, topic: str, acks: str) -> None:
    create(both, topic, "--partitions", "2")
    main = "org.apache.kafka.tools.ProducerPerformance"
    for broker in both._brokers:
        properties = [f"bootstrap.servers={broker.bootstrap_servers}", f"acks={acks}", "compression.type=lz4"]
        output, code = both._tool(
            main,
            *("--topic", topic, "--num-records", "100000", "--record-size", "100", "--throughput", "-1"),
            *("--producer-props", *properties),
        )
        assert code == 0, output + both._tool.stderr
        assert output.splitlines()[-1].startswith("100000 records sent")
    for said in both.run(OFFSETS, "--topic", topic):
        assert sum(int(line.rsplit(":", 1)[1]) for line in said.splitlines()[:-1]) == 100_000
