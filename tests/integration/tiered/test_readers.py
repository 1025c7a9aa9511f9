"""Object storage in a real S3 server, share groups, a replica that moves to another disk, quotas."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client.share.consumer import ShareConsumer
from moldau.client.wire.settings import ClientSettings
from moldau.testing import Cluster
from tests.harness.clients.share import ACCEPT
from tests.harness.tiered.s3 import s3_configs, s3_server
from tests.harness.tiered.worlds import consume, local, produce, tiered_config, tiered_topic
from tests.harness.tools import ToolRun, run_tool
from tests.harness.waiting import eventually


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disks")


@pytest.fixture(scope="module")
def cluster(disks: Path) -> Iterator[Cluster]:
    """A broker with two log directories whose remote store is an S3 server."""
    with s3_server() as endpoint:
        config = tiered_config(disks) | {
            "remote.log.storage.manager.class.name": "moldau.tiered.stores.objects.ObjectStore",
            "log.dirs": f"{disks / 'one'},{disks / 'two'}",
            **{f"rsm.config.{name}": value for name, value in s3_configs(endpoint, "kafka").items()},
        }
        with Cluster(config=config) as cluster:
            yield cluster


def filled(cluster: Cluster, disks: Path, topic: str) -> None:
    tiered_topic(cluster.bootstrap_servers, topic)
    produce(cluster.bootstrap_servers, topic, range(55))
    eventually(lambda: len(local(disks, topic)) == 1)


def tool(cluster: Cluster, name: str, *words: str) -> ToolRun:
    run = run_tool(name, "--bootstrap-server", cluster.bootstrap_servers, *words)
    assert run.code == 0, run.err
    return run


def test_segments_are_read_from_object_storage(cluster: Cluster, disks: Path, topic: str) -> None:
    filled(cluster, disks, topic)
    assert consume(cluster.bootstrap_servers, topic, 0, 55) == list(range(55))


def test_share_groups_read_both_tiers(cluster: Cluster, disks: Path, topic: str) -> None:
    filled(cluster, disks, topic)
    group = f"group-of-{topic}"
    tool(
        cluster,
        "kafka-configs",
        *("--alter", "--entity-type", "groups", "--entity-name", group),
        *("--add-config", "share.auto.offset.reset=earliest"),
    )
    settings = ClientSettings.from_properties({"bootstrap.servers": cluster.bootstrap_servers})
    seen: set[int] = set()

    async def main() -> None:
        async with ShareConsumer(settings, group, [topic]) as consumer, asyncio.timeout(60):
            while len(seen) < 55:
                for record in await consumer.poll(0.2):
                    seen.add(int.from_bytes((record.record.value or b"")[:8], "big"))
                    consumer.acknowledge(record, ACCEPT)

    asyncio.run(main())
    assert seen == set(range(55))


def test_a_replica_moves_to_another_disk(cluster: Cluster, disks: Path, topic: str, tmp_path: Path) -> None:
    filled(cluster, disks, topic)
    (before,) = disks.glob(f"*/{topic}-0")
    other = disks / ("two" if before.parent.name == "one" else "one")
    plan = tmp_path / "plan.json"
    moved = {"topic": topic, "partition": 0, "replicas": [1], "log_dirs": [str(other)]}
    plan.write_text(json.dumps({"version": 1, "partitions": [moved]}))
    tool(cluster, "kafka-reassign-partitions", "--reassignment-json-file", str(plan), "--execute")
    eventually(lambda: (other / f"{topic}-0").is_dir() and not before.exists())
    assert consume(cluster.bootstrap_servers, topic, 0, 55) == list(range(55))
    produce(cluster.bootstrap_servers, topic, range(55, 80))
    eventually(lambda: len(local(disks, topic)) == 1 and local(disks, topic)[0] > 60)
    assert consume(cluster.bootstrap_servers, topic, 0, 80) == list(range(80))


def test_reads_keep_to_their_quota(cluster: Cluster, disks: Path, topic: str) -> None:
    filled(cluster, disks, topic)
    name = "remote.log.manager.fetch.max.bytes.per.second"
    entity = ("--entity-type", "brokers", "--entity-default")
    tool(cluster, "kafka-configs", "--alter", *entity, "--add-config", f"{name}=400000")
    try:
        began = time.monotonic()
        assert consume(cluster.bootstrap_servers, topic, 0, 50) == list(range(50))
        # 5 MB, ten seconds' worth of which may be read at once.
        assert time.monotonic() - began > 2
    finally:
        tool(cluster, "kafka-configs", "--alter", *entity, "--delete-config", name)
