"""A full disk (ENOSPC): producers get an error, acknowledged records survive, writes resume later."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import assert_serves, create_and_wait, create_topic, fetch, produce
from tests.integration.conftest import StartNode

KAFKA_STORAGE_ERROR = 56
MEGABYTE = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 64 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("a small file system can only be mounted by root on Linux (mount -t tmpfs)")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, leave: int) -> Path:
    """Write a file that leaves this many bytes of the file system free."""
    status = os.statvfs(folder)
    ballast = folder / "ballast"
    with ballast.open("wb") as file:
        remaining = status.f_bavail * status.f_frsize - leave
        os.posix_fallocate(file.fileno(), 0, remaining)
    return ballast


def values(bootstrap: str, topic: str, count: int) -> list[bytes]:
    settings = {"group.id": "full", "enable.auto.commit": False, "check.crcs": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    messages = consumer.consume(count, timeout=60)
    consumer.close()
    return [message.value()[:8] for message in messages if not message.error()]


def test_a_full_disk_refuses_produce_requests_until_there_is_room(
    start_node: StartNode, small_disk: Path, tmp_path: Path, topic: str, on_moldau: bool
) -> None:
    if not on_moldau:
        pytest.skip("Apache Kafka takes a full folder offline and stops")
    config = {"log.dirs": str(small_disk / "logs"), "metadata.log.dir": str(tmp_path / "metadata")}
    node = start_node(config=config, data_dir=tmp_path / "node")
    create_and_wait(node.bootstrap_servers, topic)
    ballast = fill(small_disk, leave=12 * MEGABYTE)
    acknowledged = []
    for n in range(100):
        value = str(n).zfill(8).encode()
        answer = produce(node.bootstrap_servers, topic, batch([(b"k", value + bytes(500_000))]))
        if answer.error_code != 0:
            assert answer.error_code == KAFKA_STORAGE_ERROR
            break
        acknowledged.append(value)
    else:
        pytest.fail("the disk never got full")
    assert acknowledged, "some records were stored"
    assert fetch(node.bootstrap_servers, topic).high_watermark == len(acknowledged)
    assert values(node.bootstrap_servers, topic, len(acknowledged)) == acknowledged
    ballast.unlink()
    for n in range(100, 110):
        value = str(n).zfill(8).encode()
        answer = produce(node.bootstrap_servers, topic, batch([(b"k", value + bytes(500_000))]))
        assert (answer.error_code, answer.base_offset) == (0, len(acknowledged))
        acknowledged.append(value)
    assert values(node.bootstrap_servers, topic, len(acknowledged)) == acknowledged
    node.kill()
    node.restart()
    assert values(node.bootstrap_servers, topic, len(acknowledged)) == acknowledged


def test_a_full_disk_affects_no_other_directory_and_survives_a_restart(
    start_node: StartNode, small_disk: Path, tmp_path: Path, topic: str, on_moldau: bool
) -> None:
    if not on_moldau:
        pytest.skip("Apache Kafka takes a full folder offline and stops")
    config = {
        "log.dirs": f"{small_disk / 'logs'},{tmp_path / 'roomy'}",
        "metadata.log.dir": str(tmp_path / "roomy"),
    }
    node = start_node(config=config, data_dir=tmp_path / "node")
    create_and_wait(node.bootstrap_servers, topic, partitions=8)
    ballast = fill(small_disk, leave=0)
    codes = [
        produce(node.bootstrap_servers, topic, batch([(b"k", bytes(200_000))]), partition=p).error_code
        for p in range(8)
    ]
    assert set(codes) == {0, KAFKA_STORAGE_ERROR}, "both folders have partitions"
    node.kill()
    ballast.unlink()
    node.restart()
    for partition, code in enumerate(codes):
        answer = produce(node.bootstrap_servers, topic, batch(), partition=partition)
        assert (answer.error_code, answer.base_offset) == (0, 1 if code == 0 else 0)


def test_topics_cannot_be_created_on_a_full_disk_until_there_is_room(
    start_node: StartNode, small_disk: Path, tmp_path: Path, topic: str, on_moldau: bool
) -> None:
    if not on_moldau:
        pytest.skip("Apache Kafka takes a full folder offline and stops")
    config = {"log.dirs": str(small_disk / "logs")}
    node = start_node(config=config, data_dir=tmp_path / "node")
    create_and_wait(node.bootstrap_servers, topic)
    assert_serves(node.bootstrap_servers, topic)
    ballast = fill(small_disk, leave=0)
    for n in range(20):
        create_topic(node.bootstrap_servers, f"{topic}-{n}", config={"retention.ms": "1" + "0" * 10})
    assert fetch(node.bootstrap_servers, topic).error_code == 0, "reads still succeed"
    assert node.running
    ballast.unlink()

    def works() -> bool:
        created = create_topic(node.bootstrap_servers, f"{topic}-later")
        return (
            created.error_code in (0, 36) and produce(node.bootstrap_servers, topic, batch()).error_code == 0
        )

    eventually(works, what="topics are created again")
    eventually(lambda: produce(node.bootstrap_servers, f"{topic}-later", batch()).error_code == 0)
