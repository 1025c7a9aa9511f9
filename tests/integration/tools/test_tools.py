"""The command-line tools against a running node, each in its own process."""

from __future__ import annotations

import json
import re
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from moldau.cli.tools import TOOLS
from tests.harness.tools import Tools, run_tool, tool_command
from tests.harness.waiting import eventually
from tests.integration.conftest import StartNode

START_SECONDS = 0.3


def test_topic_is_created_described_altered_and_deleted(tools: Tools, topic: str) -> None:
    create = ("kafka-topics", "--create", "--topic", topic, "--partitions", "13", "--replication-factor", "1")
    assert f"Created topic {topic}." in tools.good(*create)
    assert topic in tools.good("kafka-topics", "--list")
    described = tools.good("kafka-topics", "--describe", "--topic", topic)
    assert len(described) == 14
    assert re.match(
        rf"Topic: {topic}\tTopicId: \S{{22}}\tPartitionCount: 13\tReplicationFactor: 1\t", described[0]
    )
    assert described[13].startswith(f"\tTopic: {topic}\tPartition: 12\tLeader: 1\tReplicas: 1\tIsr: 1")

    again = tools.run(*create)
    assert (again.code, f"Topic '{topic}' already exists." in again.out) == (1, True)
    assert tools.good(*create, "--if-not-exists") == [] or topic in tools.good("kafka-topics", "--list")

    tools.good("kafka-topics", "--alter", "--topic", topic, "--partitions", "15")
    assert len(tools.good("kafka-topics", "--describe", "--topic", topic)) == 16
    fewer = tools.run("kafka-topics", "--alter", "--topic", topic, "--partitions", "2")
    assert (fewer.code, "would not be an increase" in fewer.out) == (1, True)

    tools.good("kafka-topics", "--delete", "--topic", topic)
    eventually(lambda: topic not in tools.good("kafka-topics", "--list"), what="the topic to be gone")
    gone = tools.run("kafka-topics", "--delete", "--topic", topic)
    assert gone.out == f"Error while executing topic command : Topic '{topic}' does not exist as expected\n"


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--topic", "a/b"], "contains one or more characters other than ASCII alphanumerics"),
        (["--topic", "too-many", "--replication-factor", "3"], "3"),
        (["--topic", "bad-name", "--config", "foo=1"], "Unknown topic config name: foo"),
        (
            ["--topic", "bad-value", "--config", "retention.ms=abc"],
            "Invalid value abc for configuration retention.ms",
        ),
    ],
)
def test_invalid_topics_are_rejected(tools: Tools, argv: list[str], sentence: str) -> None:
    done = tools.run("kafka-topics", "--create", *argv)
    assert done.code == 1
    assert done.out.startswith("Error while executing topic command : ")
    assert sentence in done.out


def test_topic_configs_are_altered_and_described(tools: Tools, topic: str) -> None:
    tools.create(topic)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    change = ("--alter", "--add-config", "max.message.bytes=128000,cleanup.policy=[compact,delete]")
    assert tools.good("kafka-configs", *entity, *change) == [f"Completed updating config for topic {topic}."]
    assert tools.good("kafka-configs", *entity, "--describe") == [
        f"Dynamic configs for topic {topic} are:",
        "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy="
        "compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "  max.message.bytes=128000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:max.message.bytes=128000, "
        "DEFAULT_CONFIG:message.max.bytes=1048588}",
    ]
    tools.good("kafka-configs", "--topic", topic, "--alter", "--delete-config", "max.message.bytes")
    assert len(tools.good("kafka-configs", "--topic", topic, "--describe")) == 2
    assert len(tools.good("kafka-configs", "--topic", topic, "--describe", "--all")) > 30
    bad = tools.run("kafka-configs", "--topic", topic, "--alter", "--add-config", "retention.ms=abc")
    assert bad.code == 1
    assert "Invalid value abc for configuration retention.ms: Not a number of type LONG" in bad.err


def test_broker_configs_are_altered_and_described(tools: Tools) -> None:
    entity = ("--entity-type", "brokers", "--entity-name", "1")
    tools.good("kafka-configs", *entity, "--alter", "--add-config", "background.threads=20")
    line = (
        "  background.threads=20 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:background.threads=20, "
        "DEFAULT_CONFIG:background.threads=10}"
    )
    assert line in tools.good("kafka-configs", *entity, "--describe")
    tools.good("kafka-configs", *entity, "--alter", "--delete-config", "background.threads")
    assert line not in tools.good("kafka-configs", *entity, "--describe")


def test_produced_lines_are_consumed(tools: Tools, topic: str) -> None:
    tools.create(topic)
    tools.produce(topic, "one\ntwo\nthree\n")
    assert tools.consume(topic, 3, "--from-beginning") == ["one", "two", "three"]
    assert tools.consume(topic, 1, "--partition", "0", "--offset", "1") == ["two"]


def test_keys_headers_and_null_values(tools: Tools, topic: str) -> None:
    tools.create(topic)
    wanted = ("parse.key=true", "parse.headers=true", "null.marker=NULL")
    tools.produce(
        topic,
        "a:1,b:NULL\tk1\tv1\nc:3\tNULL\tNULL\n",
        *(word for item in wanted for word in ("--property", item)),
    )
    shown = ("print.key=true", "print.headers=true", "print.partition=true", "print.offset=true")
    properties = [word for item in shown for word in ("--property", item)]
    assert tools.consume(topic, 2, "--from-beginning", *properties) == [
        "Partition:0\tOffset:0\ta:1,b:null\tk1\tv1",
        "Partition:0\tOffset:1\tc:3\tnull\tnull",
    ]
    (line,) = tools.consume(topic, 1, "--from-beginning", "--property", "print.timestamp=true")
    assert re.fullmatch(r"CreateTime:\d{13}\tv1", line)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compression_codecs(tools: Tools, topic: str, codec: str) -> None:
    tools.create(topic)
    text = "".join(f"line number {number}\n" for number in range(200))
    tools.produce(topic, text, "--compression-codec", codec, "--timeout", "200")
    assert tools.consume(topic, 200, "--from-beginning") == text.splitlines()


def test_all_partitions_are_consumed_without_a_group(tools: Tools, topic: str) -> None:
    tools.create(topic, 5)
    lines = [f"{number}\tvalue-{number}" for number in range(50)]
    tools.produce(topic, "".join(f"{line}\n" for line in lines), "--property", "parse.key=true")
    found = tools.consume(topic, 50, "--from-beginning", "--property", "print.key=true")
    assert sorted(found) == sorted(lines)


def test_consumer_exits_after_timeout_ms(tools: Tools, topic: str) -> None:
    tools.create(topic)
    done = tools.run("kafka-console-consumer", "--topic", topic, "--timeout-ms", "500")
    assert (done.code, done.out) == (0, "")
    assert done.err.endswith("Processed a total of 0 messages\n")


def test_ctrl_c_stops_a_consumer(tools: Tools, topic: str) -> None:
    tools.create(topic)
    tools.produce(topic, "first\n")
    argv = ("--bootstrap-server", tools.bootstrap, "--topic", topic, "--from-beginning")
    consumer = subprocess.Popen(
        tool_command("kafka-console-consumer", *argv),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert consumer.stdout is not None
    assert consumer.stdout.readline() == "first\n"
    consumer.send_signal(signal.SIGINT)
    _, err = consumer.communicate(timeout=60)
    assert (consumer.returncode, err) == (130, "Processed a total of 1 messages\n")


def test_closed_pipe_stops_a_consumer_silently(tools: Tools, topic: str) -> None:
    tools.create(topic)
    tools.produce(topic, "".join(f"{number}\n" for number in range(5000)))
    argv = ("--bootstrap-server", tools.bootstrap, "--topic", topic, "--from-beginning")
    consumer = subprocess.Popen(
        tool_command("kafka-console-consumer", *argv),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert consumer.stdout is not None
    assert consumer.stderr is not None
    assert consumer.stdout.readline() == "0\n"
    consumer.stdout.close()
    tools.produce(topic, "one more line to write\n" * 1000)
    assert consumer.wait(timeout=60) == 0
    assert re.fullmatch(r"Processed a total of \d+ messages\n", consumer.stderr.read())
    consumer.stderr.close()


def test_offsets_reflect_deleted_records(tools: Tools, topic: str, tmp_path: Path) -> None:
    tools.create(topic, 2)
    tools.produce(topic, "k\ta\nk\tb\nk\tc\n", "--property", "parse.key=true")
    ends = [int(line.rpartition(":")[2]) for line in tools.offsets(topic)]
    assert sorted(ends) == [0, 3]
    partition = ends.index(3)
    assert tools.offsets(topic, "--time", "earliest") == [f"{topic}:0:0", f"{topic}:1:0"]
    assert tools.offsets(topic, "--time", "1000", "--partitions", str(partition)) == [
        f"{topic}:{partition}:0"
    ]
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": partition, "offset": 2}]}))
    deleted = tools.good("kafka-delete-records", "--offset-json-file", str(file))
    assert deleted[2:] == [f"partition: {topic}-{partition}\tlow_watermark: 2"]
    assert f"{topic}:{partition}:2" in tools.offsets(topic, "--time", "-2")
    assert tools.consume(topic, 1, "--from-beginning") == ["c"]


def test_cluster_id_endpoints_log_dirs_and_api_versions(tools: Tools, topic: str) -> None:
    tools.create(topic)
    tools.produce(topic, "some bytes\n")
    (line,) = tools.good("kafka-cluster", "cluster-id")
    assert re.fullmatch(r"Cluster ID: \S{22}", line)
    endpoints = tools.good("kafka-cluster", "list-endpoints")
    assert endpoints[1].split()[-2:] == ["unfenced", "broker"]
    answer = tools.good("kafka-log-dirs", "--describe", "--topic-list", topic)[2]
    ((directory,),) = (broker["logDirs"] for broker in json.loads(answer)["brokers"])
    (replica,) = directory["partitions"]
    assert replica["partition"] == f"{topic}-0"
    assert replica["size"] > 70
    versions = tools.good("kafka-broker-api-versions")
    assert versions[1] == "\tProduce(0): 0 to 13 [usable: 13],"
    assert versions[2] == "\tFetch(1): 4 to 18 [usable: 18],"


def test_perf_tools_print_throughput(tools: Tools, topic: str) -> None:
    tools.create(topic, 2)
    sent = ("--topic", topic, "--num-records", "5000", "--record-size", "100", "--throughput", "-1")
    total = tools.good("kafka-producer-perf-test", *sent)[-1]
    assert re.match(
        r"5000 records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, ", total
    )
    header, line = tools.good("kafka-consumer-perf-test", "--topic", topic, "--num-records", "5000")
    assert header.startswith("start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg")
    assert line.split(", ")[4] == "5000"


def test_dump_log_of_a_stopped_node(start_node: StartNode, topic: str) -> None:
    node = start_node()
    tools = Tools(node.bootstrap_servers)
    tools.create(topic)
    tools.produce(topic, "k\tv\n", "--property", "parse.key=true")
    node.stop()
    (log,) = node.data_dir.rglob(f"{topic}-0/*.log")
    done = run_tool("kafka-dump-log", "--files", str(log), "--print-data-log")
    assert done.code == 0
    assert done.lines[-1].endswith("headerKeys: [] key: k payload: v")
    (metadata,) = node.data_dir.rglob("__cluster_metadata-0/*.log")
    done = run_tool("kafka-dump-log", "--files", str(metadata), "--cluster-metadata-decoder")
    assert done.code == 0
    assert f'{{"type":"TOPIC_RECORD","version":0,"data":{{"name":"{topic}"' in done.out


def test_options_of_older_releases_are_accepted(tools: Tools, topic: str) -> None:
    done = run_tool("kafka-topics", "--create", "--topic", topic, "--broker-list", tools.bootstrap)
    assert (done.code, f"Created topic {topic}." in done.out) == (0, True)
    done = run_tool(
        "kafka-console-producer", "--broker-list", tools.bootstrap, "--topic", topic, stdin="hello\n"
    )
    assert (done.code, done.out, done.err) == (0, "", "")
    done = tools.run("kafka-topics", "--list", "--zookeeper", "localhost:2181")
    assert done.code == 0
    assert "--zookeeper is ignored" in done.err


def test_unreachable_cluster_is_reported_with_a_hint() -> None:
    for name, argv in (
        ("kafka-topics", ["--list"]),
        ("kafka-console-producer", ["--topic", "t"]),
        ("kafka-console-consumer", ["--topic", "t"]),
    ):
        done = run_tool(name, "--bootstrap-server", "127.0.0.1:1", *argv, stdin="x\n")
        assert done.code == 1
        output = done.out + done.err
        assert "cannot connect to 127.0.0.1:1: connection refused" in output
        assert "moldau doctor --bootstrap-server 127.0.0.1:1" in output


def test_doctor_finds_no_problem(tools: Tools) -> None:
    done = tools.run("doctor")
    assert done.code == 0, done
    assert "Clients on this machine can use this cluster." in done.out


def spent_on(command: list[str]) -> float:
    """Return seconds of CPU time, which do not depend on the load of the machine."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_tools_start_quickly(tools: Tools) -> None:
    subprocess.run(tool_command("kafka-topics", "--help"), stdout=subprocess.DEVNULL, check=True)
    for name in TOOLS:
        assert min(spent_on(tool_command(name, "--help")) for _ in range(3)) < START_SECONDS, name
    listing = tool_command("kafka-topics", "--list", "--bootstrap-server", tools.bootstrap)
    assert min(spent_on(listing) for _ in range(3)) < START_SECONDS
