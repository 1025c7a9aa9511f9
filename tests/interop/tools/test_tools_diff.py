"""Moldau's tools compared with Apache Kafka's Java tools; see `harness/apache/tool_pairs.py`."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from moldau.cli.tools import TOOLS
from tests.harness.apache.node import java_command
from tests.harness.apache.tool_pairs import JAVA_TOOLS, Tools

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def test_topics_tool_matches_java(tools: Tools) -> None:
    def topics(*argv: str) -> str:
        return tools.same("kafka-topics", *argv, topic="topics")

    named = ("--topic", "{topic}")
    topics(
        "--create", *named, "--partitions", "3", "--replication-factor", "1", "--config", "retention.ms=5000"
    )
    topics("--create", *named, "--if-not-exists")
    assert "retention.ms=5000" in topics("--describe", *named)
    topics("--describe", *named, "--topics-with-overrides")
    topics("--describe", *named, "--under-replicated-partitions")
    topics("--describe", *named, "--at-min-isr-partitions")
    topics("--alter", *named, "--partitions", "5")
    assert "PartitionCount: 5" in topics("--describe", *named)
    topics("--describe", "--topic", "nope", "--if-exists")
    topics("--delete", *named)
    topics("--delete", *named, "--if-exists")
    topics("--list", "--topic", "none of them")


@pytest.mark.parametrize(
    "argv",
    [
        ["--create", "--topic", "a/b"],
        ["--create", "--topic", "bad", "--config", "foo=1"],
        ["--create", "--topic", "bad", "--config", "retention.ms=abc"],
        ["--create", "--topic", "bad", "--partitions", "0"],
        ["--create", "--topic", "bad", "--replication-factor", "0"],
        ["--create", "--topic", "bad", "--replica-assignment", "1:1"],
        ["--create", "--topic", "bad", "--replica-assignment", "1:2,1"],
        ["--describe", "--topic", "nope"],
        ["--delete", "--topic", "nope"],
        ["--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAAQ"],
        ["--create"],
        ["--list", "--create"],
        ["--list", "--partitions", "3"],
        ["--alter", "--topic", "x"],
    ],
    ids=" ".join,
)
def test_topics_tool_failures_match_java(tools: Tools, argv: list[str]) -> None:
    tools.same_failure("kafka-topics", *argv)


def test_configs_tool_matches_java(tools: Tools) -> None:
    tools.create("configs")

    def configs(*argv: str) -> str:
        return tools.same("kafka-configs", *argv, topic="configs")

    added = "max.message.bytes=128000,cleanup.policy=[compact,delete]"
    configs("--alter", "--entity-type", "topics", "--entity-name", "{topic}", "--add-config", added)
    assert "DYNAMIC_TOPIC_CONFIG" in configs("--describe", "--topic", "{topic}")
    configs("--describe", "--topic", "{topic}", "--all")
    configs("--alter", "--topic", "{topic}", "--delete-config", "max.message.bytes")
    configs("--describe", "--topic", "{topic}")
    configs("--describe", "--topic", "nope")
    configs(
        "--alter", "--entity-type", "brokers", "--entity-name", "1", "--add-config", "background.threads=20"
    )
    configs("--describe", "--broker", "1")
    configs("--describe", "--broker", "1", "--all")
    configs("--alter", "--broker", "1", "--delete-config", "background.threads")
    configs("--alter", "--broker-defaults", "--add-config", "log.retention.ms=100000")
    configs("--describe", "--entity-type", "brokers")
    configs("--alter", "--broker-defaults", "--delete-config", "log.retention.ms")
    configs("--describe", "--broker", "7")


def test_quotas_match_java(tools: Tools) -> None:
    def configs(*argv: str) -> str:
        return tools.same("kafka-configs", *argv)

    configs(
        "--alter", "--client", "app", "--add-config", "producer_byte_rate=10000000,request_percentage=12.5"
    )
    assert "producer_byte_rate=1.0E7" in configs("--describe", "--client", "app")
    user_and_client = ("--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients")
    configs("--alter", *user_and_client, "--entity-default", "--add-config", "consumer_byte_rate=5")
    configs("--describe", *user_and_client)
    configs("--alter", "--ip", "127.0.0.1", "--add-config", "connection_creation_rate=7")
    configs("--describe", "--entity-type", "ips")
    configs("--alter", "--ip", "127.0.0.1", "--add-config", "connection_creation_rate=8")


@pytest.mark.parametrize(
    "argv",
    [
        ["--describe"],
        ["--describe", "--entity-type", "bogus"],
        ["--describe", "--broker", "x"],
        ["--describe", "--topic", "x", "--add-config", "a=b"],
        ["--describe", "--entity-type", "topics", "--entity-default"],
        ["--alter", "--topic", "x"],
        ["--alter", "--topic", "x", "--add-config", "a b=1"],
        ["--alter", "--entity-type", "topics", "--add-config", "a=b"],
        ["--alter", "--topic", "nope", "--add-config", "retention.ms=1"],
        ["--alter", "--broker", "1", "--add-config", "node.id=4"],
        ["--alter", "--client", "c", "--add-config", "producer_byte_rate=x"],
    ],
    ids=" ".join,
)
def test_configs_tool_failures_match_java(tools: Tools, argv: list[str]) -> None:
    tools.same_failure("kafka-configs", *argv)


def test_console_tools_match_java(tools: Tools) -> None:
    tools.create("console")
    text = "a:1,b:2\tk1\tv1\nc:3\tk2\tv2\n\tk\t\n"
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    ignoring = ("--reader-property", "ignore.error=true", "--reader-property", "null.marker=NIL")
    topic = ("--topic", "{topic}")
    tools.same("kafka-console-producer", *topic, *keyed, *ignoring, topic="console", stdin=text)
    tools.same("kafka-console-producer", *topic, topic="console", stdin="plain\n")
    tools.same("kafka-console-producer", *topic, *ignoring, topic="console", stdin="NIL\n")
    names = ("key", "headers", "timestamp", "partition", "offset", "epoch", "delivery")
    everything = [word for name in names for word in ("--formatter-property", f"print.{name}=true")]
    some = ("--partition", "0", "--offset", "0", "--max-messages", "5")
    shown = tools.same("kafka-console-consumer", *topic, *some, *everything, topic="console")
    assert shown.splitlines()[0].endswith("\ta:1,b:2\tk1\tv1")
    plain = ("--formatter-property", "null.literal=-", "--formatter-property", "key.separator=:")
    tools.same("kafka-console-consumer", *topic, *some, *plain, topic="console")
    tools.same("kafka-console-consumer", *topic, "--partition", "0", "--timeout-ms", "1500", topic="console")


@pytest.mark.parametrize(
    "argv",
    [
        ["--topic", "x", "--partition", "0", "--offset", "y"],
        ["--topic", "x", "--offset", "1"],
        [],
        ["--topic", "x", "--from-beginning", "--offset", "1", "--partition", "0"],
        ["--topic", "x", "--group", "g", "--partition", "0"],
        ["--topic", "x", "--bogus"],
    ],
    ids=" ".join,
)
def test_console_consumer_failures_match_java(tools: Tools, argv: list[str]) -> None:
    tools.same_failure("kafka-console-consumer", *argv)


def test_get_offsets_tool_matches_java(tools: Tools) -> None:
    tools.create("offsets", 3)
    lines = "".join(f"{number}\tvalue\n" for number in range(30))
    keyed = ("--topic", "{topic}", "--reader-property", "parse.key=true")
    tools.same("kafka-console-producer", *keyed, topic="offsets", stdin=lines)

    def offsets(*argv: str) -> str:
        return tools.same("kafka-get-offsets", *argv, topic="offsets")

    assert offsets("--topic", "{topic}").count("\n") == 3
    for time in ("earliest", "-1", "-2", "-4", "1000", "99999999999999"):
        offsets("--topic", "{topic}", "--time", time)
    offsets("--topic", "{topic}", "--partitions", "0,2")
    offsets("--topic-partitions", "{topic}:1-")
    for argv in (
        ["--topic", "nope"],
        ["--time", "soon"],
        ["--partitions", "a"],
        ["--topic-partitions", "a", "--topic", "b"],
    ):
        tools.same_failure("kafka-get-offsets", *argv)


def test_delete_records_tool_matches_java(tools: Tools, tmp_path: Path) -> None:
    tools.create("delete")
    tools.same("kafka-console-producer", "--topic", "{topic}", topic="delete", stdin="a\nb\nc\n")
    for name in ("delete-ours", "delete-java"):
        partitions = [{"topic": name, "partition": 0, "offset": 2}]
        (tmp_path / f"{name}.json").write_text(json.dumps({"partitions": partitions, "version": 1}))
    files = ("--offset-json-file", str(tmp_path / "{topic}.json"))
    assert "low_watermark: 2" in tools.same("kafka-delete-records", *files, topic="delete")
    for text in ('{"version": 1}', '{"partitions": [], "version": 2}'):
        (tmp_path / "bad.json").write_text(text)
        tools.same_failure("kafka-delete-records", "--offset-json-file", str(tmp_path / "bad.json"))


def test_cluster_and_log_dirs_tools_match_java(tools: Tools) -> None:
    tools.same("kafka-cluster", "cluster-id")
    tools.same("kafka-cluster", "list-endpoints")
    tools.same_failure("kafka-cluster", "unregister", "--id", "99")
    tools.same("kafka-broker-api-versions")
    both = tools.run("kafka-log-dirs", "--describe")
    *ours, our_json = both.ours.lines
    *java, java_json = both.java.lines
    assert ours == java
    assert sorted_json(our_json) == sorted_json(java_json)
    tools.same_failure("kafka-log-dirs", "--describe", "--broker-list", "1,5")


def sorted_json(text: str) -> object:
    """Sort partitions: Java lists them in hash order."""
    data = json.loads(text)
    for broker in data["brokers"]:
        for directory in broker["logDirs"]:
            directory["partitions"].sort(key=lambda replica: replica["partition"])
    return data


def test_dump_log_matches_java(tools: Tools) -> None:
    tools.create("dump")
    for codec in ("none", "gzip", "lz4", "zstd", "snappy"):
        argv = ("--topic", "{topic}", "--compression-codec", codec, "--timeout", "100")
        tools.same("kafka-console-producer", *argv, topic="dump", stdin="line of text\n" * 300)
    tools.node.stop()
    try:
        folder = tools.node.data_dir
        files = {path.parent.name: path for path in folder.rglob("00000000000000000000.log")}
        ours = files["dump-ours-0"]
        for argv in (
            [],
            ["--deep-iteration"],
            ["--print-data-log"],
            ["--print-data-log", "--skip-record-metadata"],
        ):
            tools.same("kafka-dump-log", "--files", str(ours), *argv, bootstrap=False)
        for suffix in (".index", ".timeindex"):
            for option in ([], ["--index-sanity-check"], ["--verify-index-only"]):
                path = str(ours.with_suffix(suffix))
                tools.same("kafka-dump-log", "--files", path, *option, bootstrap=False)
        for snapshot in ours.parent.glob("*.snapshot"):
            tools.same("kafka-dump-log", "--files", str(snapshot), bootstrap=False)
        metadata = ("--files", str(files["__cluster_metadata-0"]), "--cluster-metadata-decoder")
        assert "TOPIC_RECORD" in tools.same("kafka-dump-log", *metadata, bootstrap=False)
        for checkpoint in folder.rglob("*.checkpoint"):
            argv = ["--files", str(checkpoint), "--cluster-metadata-decoder"]
            tools.same("kafka-dump-log", *argv, bootstrap=False)
    finally:
        tools.node.start()


PARSERS = {
    **JAVA_TOOLS,
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
}


COMMANDS = {
    "kafka-metadata-quorum": ("describe", "add-controller", "remove-controller"),
    "kafka-features": (
        "describe",
        "upgrade",
        "downgrade",
        "disable",
        "version-mapping",
        "feature-dependencies",
    ),
    "kafka-cluster": ("cluster-id", "unregister", "list-endpoints"),
    "kafka-transactions": (
        "list",
        "describe",
        "describe-producers",
        "find-hanging",
        "abort",
        "forceTerminateTransaction",
    ),
}


NEED_AN_ADDRESS = ("kafka-transactions", "kafka-e2e-latency", "kafka-metadata-quorum", "kafka-features")


@pytest.mark.parametrize("name", PARSERS)
def test_every_flag_of_java_is_known(name: str, libs: Path) -> None:
    for word in COMMANDS.get(name, ("",)):
        before = ["--bootstrap-server", "b:1"] if name in NEED_AN_ADDRESS else []
        command = java_command(libs, PARSERS[name], *before, *([word] if word else []), "--help")
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        flags = set(re.findall(r"^ *(--[a-z][\w.-]*[\w])(?= |$)", done.stdout + done.stderr, re.MULTILINE))
        assert flags
        parser = import_module(f"moldau.cli.kafka.{TOOLS[name].module}")._parser()
        assert flags <= known_flags(parser, word)


def known_flags(parser: argparse.ArgumentParser, command: str) -> set[str]:
    """Return the flags of a tool, or of one of its subcommands."""
    flags = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            flags |= set(action.choices[command]._option_string_actions)
    return flags
