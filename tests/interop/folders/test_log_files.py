"""The files of a log: Kafka's tool reads Moldau's files, and Moldau opens those of Apache Kafka.

Apache Kafka's files after a clean shutdown are the reference: ours, rebuilt from the same batches by
recovery, have the same bytes.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.base.clock import SystemClock
from moldau.base.ids import TopicPartition
from moldau.protocol.records import Record, build_batch
from moldau.storage.disk.disk import PosixDisk
from moldau.storage.log.append import Origin
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from tests.harness.apache.node import ApacheCluster, java_command, kafka_libs
from tests.unit.storage.log.one_log import Folder, marker

pytestmark = pytest.mark.interop


def dump(folder: Path, suffixes: tuple[str, ...], *options: str) -> str:
    libs = kafka_libs()
    if libs is None:
        pytest.skip("set KAFKA_LIBS to the folder with Kafka's jars")
    names = ",".join(str(path) for path in sorted(folder.iterdir()) if path.name.endswith(suffixes))
    command = java_command(libs, "org.apache.kafka.tools.DumpLogSegments", "--files", names, *options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a log with codecs, producers, transactions, leader epochs and several segments."""
    folder = Folder(tmp_path_factory.mktemp("ours"), segment_bytes=60_000, index_interval_bytes=1000)
    now = folder.clock.time_ms()
    log = folder.open()
    for number in range(200):
        producer_id, sequence = number % 3, number // 3 * 20
        transactional = producer_id == 2
        records = [Record(n, now + number * 10 + n, b"key-%d" % n, os.urandom(40)) for n in range(20)]
        data = build_batch(
            records,
            codec=number % 5,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=transactional,
        )
        log.append_as_leader(data, number // 50)
        if transactional and number % 4 == 0:
            end = marker(commit=number % 8 == 0, producer_id=producer_id)
            log.append_as_leader(end, number // 50, origin=Origin.COORDINATOR)
    log.high_watermark = log.log_end_offset
    assert len(log.segments.items) > 2
    assert log.reader.aborted_transactions(0, log.log_end_offset)
    log.close()
    return folder.path


def test_dump_log_finds_no_error_in_our_indexes(ours: Path) -> None:
    kinds = (".index", ".timeindex")
    indexes = len([path for path in ours.iterdir() if path.name.endswith(kinds)])
    assert dump(ours, kinds, "--index-sanity-check").count("passed sanity check") == indexes
    verified = dump(ours, kinds, "--verify-index-only").splitlines()
    assert all(line.startswith("Dumping") for line in verified), verified


def test_dump_log_reads_all_records_of_our_segments(ours: Path) -> None:
    said = dump(ours, (".log",), "--deep-iteration")
    assert said.count("| offset:") == 200 * 20 + said.count("endTxnMarker")
    assert said.count("isvalid: true") == said.count("baseOffset:")
    assert "isvalid: false" not in said
    assert "offsets" not in said.replace("Non-consecutive offsets", ""), said
    jumps = [line for line in said.splitlines() if "is followed by" in line]
    assert all(line.strip().startswith("-1 is followed by") for line in jumps), "every segment but the first"


def test_dump_log_reads_our_producer_snapshots_and_transaction_indexes(ours: Path) -> None:
    snapshots = dump(ours, (".snapshot",))
    assert "producerId: 2" in snapshots
    assert "currentTxnFirstOffset: OptionalLong[" in snapshots
    aborted = dump(ours, (".txnindex",))
    assert aborted.count("producerId: 2") >= 8


@pytest.fixture(scope="module")
def apaches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """The folders of an Apache Kafka node: while it was running, and after it was stopped."""
    if kafka_libs() is None:
        pytest.skip("set KAFKA_LIBS to the folder with Kafka's jars")
    folder = tmp_path_factory.mktemp("apache")
    with ApacheCluster(data_dir=folder / "node") as apache:
        write_with(apache)
        running = folder / "running"
        shutil.copytree(apache.data_dir / "logs", running)
        apache.stop()
        yield running, apache.data_dir / "logs"


def write_with(apache: ApacheCluster) -> None:
    servers = {"bootstrap.servers": apache.bootstrap_servers}
    small = {"segment.bytes": "1048576"}
    topics = [NewTopic("plain", 1, 1, config=small), NewTopic("transactions", 1, 1), NewTopic("empty", 1, 1)]
    admin = AdminClient(servers)
    for done in admin.create_topics(topics).values():
        done.result(30)
    producer = Producer(
        {**servers, "enable.idempotence": True, "batch.size": 20_000, "compression.type": "lz4"}
    )
    for number in range(30_000):
        producer.produce("plain", key=b"%d" % number, value=os.urandom(100))
        producer.poll(0)
    producer.flush()
    for number in range(8):
        producer = Producer({**servers, "transactional.id": f"t{number % 2}"})
        producer.init_transactions()
        producer.begin_transaction()
        for _ in range(50):
            producer.produce("transactions", key=b"k", value=b"v")
        producer.flush()
        producer.commit_transaction() if number % 3 else producer.abort_transaction()


def opened(folder: Path, topic: str, *, clean: bool) -> Log:
    partition = TopicPartition(topic, 0)
    config = LogConfig(segment_bytes=1_048_576)
    return Log.open(
        PosixDisk(), SystemClock(), str(folder / f"{topic}-0"), partition, None, config, clean_shutdown=clean
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if path.name != "leader-epoch-checkpoint"
    }


@pytest.mark.parametrize("topic", ["plain", "transactions", "empty"])
def test_moldau_opens_folders_of_apache_kafka(apaches: tuple[Path, Path], tmp_path: Path, topic: str) -> None:
    running, stopped = apaches
    measure = contents(stopped / f"{topic}-0")
    for source, clean in ((stopped, True), (running, False)):
        copy = tmp_path / source.name
        shutil.copytree(source, copy)
        log = opened(copy, topic, clean=clean)
        log.high_watermark = log.log_end_offset
        assert log.topic_id is not None
        assert log.log_end_offset == {"plain": 30_000, "transactions": 408, "empty": 0}[topic]
        assert log.offsets.first_unstable_offset is None
        assert len(log.reader.aborted_transactions(0, log.log_end_offset)) == (
            3 if topic == "transactions" else 0
        )
        read_through(log)
        log.close()
        assert contents(copy / f"{topic}-0") == measure


def read_through(log: Log) -> None:
    offset = 0
    while offset < log.log_end_offset:
        result = log.reader.read(offset, 100_000, upper_bound=log.log_end_offset, blocking=True)
        assert result is not None
        offset = result.next_offset


def test_a_running_apache_kafka_preallocates_its_indexes(apaches: tuple[Path, Path]) -> None:
    """Otherwise the test above would not test preallocated indexes."""
    sizes = [
        path.stat().st_size for path in (apaches[0] / "empty-0").iterdir() if path.name.endswith(".index")
    ]
    assert sizes == [10_485_760]
    (stored,) = struct.iter_unpack(">iI", (apaches[0] / "empty-0" / f"{0:020d}.index").read_bytes()[:8])
    assert stored == (0, 0)
