"""Apache Kafka and Moldau compact the same files of a topic, and the results are compared.

Then Kafka's DumpLogSegments reads Moldau's result.
"""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.base.clock import SystemClock
from moldau.base.pool import InlinePool
from moldau.protocol.records import iter_batches, iter_records
from moldau.storage.cleaner.runner import InlineRunner
from moldau.storage.disk.disk import PosixDisk
from moldau.storage.log.config import LogConfig
from moldau.storage.manager.manager import LogManager
from tests.harness.apache.node import ApacheCluster, java_command, kafka_libs

pytestmark = pytest.mark.interop

TOPIC = "compacted"
MINUTE = 60_000
CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.01, segment_ms=10 * MINUTE,
    delete_retention_ms=1000, min_compaction_lag_ms=0
)  # fmt: skip


@pytest.fixture(scope="module")
def libs() -> Path:
    folder = kafka_libs()
    if folder is None:
        pytest.skip("KAFKA_LIBS is not set")
    return folder


def create_topic(bootstrap_servers: str) -> None:
    config = {
        "cleanup.policy": "compact",
        "segment.ms": str(CONFIG.segment_ms),
        "min.cleanable.dirty.ratio": str(CONFIG.min_cleanable_dirty_ratio),
        "delete.retention.ms": str(CONFIG.delete_retention_ms),
        "message.timestamp.after.max.ms": str(10**15),
    }
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)])[TOPIC].result(30)


def write_history(bootstrap_servers: str, seed: int) -> None:
    """Write keyed records in all codecs, tombstones and transactions, in segments rolled by timestamps."""
    choice = random.Random(seed)
    timestamp = int(time.time() * 1000) + 200 * seed * MINUTE
    for number, codec in enumerate(["none", "gzip", "snappy", "lz4", "zstd"] * 3):
        options: dict[str, Any] = {"bootstrap.servers": bootstrap_servers, "compression.type": codec}
        options |= {"linger.ms": 20, "batch.num.messages": 40, "enable.idempotence": number % 3 != 0}
        transactional = number % 3 == 1
        if transactional:
            options["transactional.id"] = f"transaction-{number}"
        producer = Producer(options)
        if transactional:
            producer.init_transactions(30)
            producer.begin_transaction()
        for _ in range(100):
            key = b"key-%d" % choice.randrange(400)
            value = None if choice.random() < 0.15 else b"value-%d-%d" % (number, choice.randrange(10**9))
            producer.produce(TOPIC, value, key, 0, timestamp=timestamp, headers=[("h", b"x")])
        producer.flush(30)
        if transactional:
            producer.commit_transaction(30) if number % 2 else producer.abort_transaction(30)
        timestamp += 11 * MINUTE


def describe(folder: Path) -> list[Any]:
    """Return all batches of all segments, except for values that depend on the time or the compressor."""
    found: list[Any] = []
    for path in sorted(folder.glob("*.log")):
        data = path.read_bytes()
        found.append(path.name)
        for position, header in iter_batches(data):
            records = list(iter_records(memoryview(data)[position:], header))
            found.append(
                (
                    header._replace(crc=0, batch_length=0, base_timestamp=0),
                    [record._replace(headers=tuple(record.headers)) for record in records],
                )
            )
    return found


def aborted(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.txnindex")))


async def compact(data: Path, config: LogConfig, clock: Any = None) -> None:
    pool, disk = InlinePool(), PosixDisk()
    manager = LogManager(
        disk, clock or SystemClock(), pool, random.Random(), {str(data): None}, InlineRunner(disk, pool)
    )
    await manager.load(lambda topic: config if topic == TOPIC else LogConfig())
    for partition in [partition for partition in manager.table.current if partition.topic != TOPIC]:
        del manager.table.current[partition]
    assert await manager.cleaner.clean_due() == 1
    assert manager.cleaner.uncleanable == set()
    await manager.upkeep.remove_deleted_files()
    await manager.shutdown()


def cleaned_up_to(data: Path) -> int:
    checkpoint = data / "cleaner-offset-checkpoint"
    text = checkpoint.read_text() if checkpoint.exists() else ""
    found = re.search(rf"^{TOPIC} 0 (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def apache_compacts(folder: Path, data: Path) -> None:
    before, deadline = cleaned_up_to(data), time.monotonic() + 60
    config = {"log.cleaner.backoff.ms": 100, "log.initial.task.delay.ms": 100}
    with ApacheCluster(data_dir=folder, config=config):
        while cleaned_up_to(data) == before:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.mark.timeout(300)
def test_moldau_and_apache_kafka_compact_alike(tmp_path: Path, libs: Path) -> None:
    """Compact twice: the second time the delete horizons of the first are reached."""
    folder = tmp_path / "apache"
    theirs = folder / "logs"
    for number in (1, 2):
        with ApacheCluster(data_dir=folder, config={"log.cleaner.enable": False}) as cluster:
            if number == 1:
                create_topic(cluster.bootstrap_servers)
            write_history(cluster.bootstrap_servers, number)
        ours = tmp_path / f"ours{number}"
        shutil.copytree(theirs, ours)
        apache_compacts(folder, theirs)
        asyncio.run(compact(ours, CONFIG))
        expected, found = describe(theirs / f"{TOPIC}-0"), describe(ours / f"{TOPIC}-0")
        assert len(expected) > 30
        assert found == expected
        assert aborted(ours / f"{TOPIC}-0") == aborted(theirs / f"{TOPIC}-0")
        assert cleaned_up_to(ours) == cleaned_up_to(theirs)
        tool_reads(libs, ours / f"{TOPIC}-0")


def tool_reads(libs: Path, folder: Path) -> None:
    files = [
        str(path)
        for path in sorted(folder.iterdir())
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    ]
    command = java_command(
        libs, "org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", ",".join(files)
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "isvalid: false" not in done.stdout
    assert "isvalid: true" in done.stdout
    # Gaps between offsets are expected after compaction; any other warning is an error.
    for complaint in (
        "Mismatches in",
        "Found timestamp mismatch",
        "Found out of order",
        "corrupt",
        "Exception",
    ):
        assert complaint not in done.stdout + done.stderr


@pytest.mark.timeout(120)
def test_dump_log_reads_segments_compacted_by_moldau(tmp_path: Path, libs: Path) -> None:
    from tests.unit.storage.managed_logs import COMPACT, ORDERS, TOPIC_ID, World, append

    async def scenario() -> str:
        world = World(tmp_path)
        config = replace(COMPACT, index_interval_bytes=100, segment_bytes=3000)
        manager = await world.start(config)
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, config)
        for number in range(60):
            pairs = [(b"k%d" % (number * key % 50), None if key == 3 else b"x" * 40) for key in range(5)]
            append(log, pairs, world.clock.time_ms() + number, codec=number % 5)
            if number % 4 == 3:
                log.roll()
        await manager.cleaner.clean_due()
        world.clock.advance(100_000)
        append(log, [(b"new", b"1")], world.clock.time_ms())
        log.roll()
        await manager.cleaner.clean_due()
        world.clock.advance(60_000)
        await manager.upkeep.remove_deleted_files()
        await manager.shutdown()
        return log.directory

    tool_reads(libs, Path(asyncio.run(scenario())))
