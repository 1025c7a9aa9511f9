"""DumpLogSegments and Apache Kafka on the folders of a Moldau node, and vice versa."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster
from tests.interop.conftest import JavaTool, Node

pytestmark = pytest.mark.interop

DUMP = "org.apache.kafka.tools.DumpLogSegments"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COUNT = 2000


def new_node(kind: str, folder: Path, libs: Path) -> Node:
    if kind == "apache" or os.environ.get("MOLDAU_TEST_BROKER") == "apache":
        return ApacheCluster(data_dir=folder, libs=libs)
    return Cluster(data_dir=folder)


def fill(bootstrap: str) -> None:
    """Fill a topic per codec, a compacted one and one with LogAppendTime; delete some records."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"segment.bytes": str(1 << 20), "index.interval.bytes": "2000"}
    topics = {f"codec-{codec}": config for codec in CODECS}
    topics["compacted"] = {"cleanup.policy": "compact"}
    topics["append-time"] = {"message.timestamp.type": "LogAppendTime"}
    for future in admin.create_topics(
        [NewTopic(name, 1, 1, config=own) for name, own in topics.items()]
    ).values():
        future.result(30)
    for name in topics:
        codec = name.removeprefix("codec-") if name.startswith("codec-") else "none"
        settings = {
            "compression.type": codec,
            "enable.idempotence": True,
            "batch.num.messages": 100,
            "linger.ms": 5,
        }
        producer = Producer({"bootstrap.servers": bootstrap, **settings})
        for n in range(COUNT):
            value = f"{n}:".encode() + os.urandom(700) + bytes(200)
            producer.produce(name, value, key=str(n % 50), headers={"n": str(n)})
            producer.poll(0)
        assert producer.flush(30) == 0
    cut = TopicPartition("codec-none", 0, 100)
    admin.delete_records([cut])[cut].result(10)


def read(bootstrap: str, topic: str, first: int = 0) -> list[Message]:
    settings = {"group.id": "read", "enable.auto.commit": False, "check.crcs": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    messages: list[Message] = []
    deadline = time.monotonic() + 30
    while len(messages) < COUNT - first:
        assert time.monotonic() < deadline, f"{len(messages)} records of {topic}"
        messages += [message for message in consumer.consume(1000, timeout=1) if message.error() is None]
    consumer.close()
    return messages


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory, libs: Path) -> Iterator[Path]:
    """The log directory of a stopped Moldau node with data."""
    folder = tmp_path_factory.mktemp("stopped")
    node = new_node("moldau", folder, libs)
    with node:
        fill(node.bootstrap_servers)
    yield folder / "logs"


@pytest.mark.parametrize("codec", CODECS)
def test_segments_are_read_record_by_record(stopped: Path, tool: JavaTool, codec: str) -> None:
    segments = sorted((stopped / f"codec-{codec}-0").glob("*.log"))
    assert len(segments) > 1, "several segments"
    offsets: list[int] = []
    for segment in segments:
        output, code = tool(DUMP, "--deep-iteration", "--print-data-log", "--files", str(segment))
        assert code == 0, tool.stderr
        assert "isvalid: false" not in output
        offsets += [int(offset) for offset in re.findall(r"^\| offset: (\d+)", output, re.MULTILINE)]
        assert set(re.findall(r"compresscodec: (\w+)", output)) == {codec}
    assert offsets == list(range(offsets[0], COUNT))


@pytest.mark.parametrize(
    "name", ["codec-none-0", "codec-zstd-0", "compacted-0", "append-time-0", "__cluster_metadata-0"]
)
def test_indexes_agree_with_their_logs(stopped: Path, tool: JavaTool, name: str) -> None:
    indexes = sorted([*(stopped / name).glob("*.index"), *(stopped / name).glob("*.timeindex")])
    assert indexes
    files = ",".join(map(str, indexes))
    output, code = tool(DUMP, "--verify-index-only", "--files", files)
    assert code == 0, tool.stderr
    complaints = re.findall(r"(?im)^.*(mismatch|out of order|not found|corrupt|non-consecutive).*$", output)
    assert complaints == [], output
    sane, code = tool(DUMP, "--index-sanity-check", "--files", files)
    assert code == 0, tool.stderr
    assert sane.count("passed sanity check") + sane.count("is empty") == len(indexes), sane


def test_producer_snapshots_are_read(stopped: Path, tool: JavaTool) -> None:
    snapshots = sorted((stopped / "codec-none-0").glob("*.snapshot"))
    assert snapshots
    output, code = tool(DUMP, "--files", str(snapshots[-1]))
    assert code == 0, tool.stderr
    assert f"lastSequence: {COUNT - 1}" in output


def test_the_metadata_log_is_decoded(stopped: Path, tool: JavaTool) -> None:
    segments = sorted((stopped / "__cluster_metadata-0").glob("*.log"))
    output, code = tool(DUMP, "--cluster-metadata-decoder", "--files", str(segments[0]))
    assert code == 0, tool.stderr
    for word in (
        "REGISTER_BROKER_RECORD",
        "TOPIC_RECORD",
        "PARTITION_RECORD",
        "CONFIG_RECORD",
        "LeaderChange",
    ):
        assert word in output, f"no {word}"
    assert '"name":"codec-zstd"' in output
    assert "Could not decode" not in output
    assert "isvalid: false" not in output


def test_the_bootstrap_checkpoint_is_decoded(stopped: Path, tool: JavaTool) -> None:
    checkpoints = [*stopped.glob("*.checkpoint"), *(stopped / "__cluster_metadata-0").glob("*.checkpoint")]
    assert checkpoints
    for checkpoint in checkpoints:
        output, code = tool(DUMP, "--cluster-metadata-decoder", "--files", str(checkpoint))
        assert code == 0, tool.stderr
        assert "Could not decode" not in output


@pytest.mark.parametrize(("first", "second"), [("moldau", "apache"), ("apache", "moldau")])
def test_one_broker_starts_on_the_folder_of_the_other(
    first: str, second: str, tmp_path: Path, libs: Path
) -> None:
    with new_node(first, tmp_path, libs) as node:
        fill(node.bootstrap_servers)
        written = {name: read(node.bootstrap_servers, name) for name in ("codec-zstd", "append-time")}
    with new_node(second, tmp_path, libs) as node:
        for name, messages in written.items():
            found = read(node.bootstrap_servers, name)
            assert [m.value() for m in found] == [m.value() for m in messages]
            assert [m.timestamp() for m in found] == [m.timestamp() for m in messages]
        assert read(node.bootstrap_servers, "codec-none", first=100)[0].offset() == 100
        producer = Producer({"bootstrap.servers": node.bootstrap_servers})
        producer.produce("codec-gzip", b"after")
        assert producer.flush(20) == 0
    with new_node(first, tmp_path, libs) as node:
        consumer = Consumer(
            {"bootstrap.servers": node.bootstrap_servers, "group.id": "g", "enable.auto.commit": False}
        )
        consumer.assign([TopicPartition("codec-gzip", 0, COUNT)])
        message = consumer.poll(20)
        consumer.close()
        assert message is not None
        assert (message.offset(), message.value()) == (COUNT, b"after")
