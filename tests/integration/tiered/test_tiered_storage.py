"""Tiered storage of a real node with a real client: copy, read, look up, expire, delete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.testing import Cluster
from tests.harness.scraping import MeasuredCluster, measured_cluster
from tests.harness.tiered.worlds import (
    consume,
    local,
    produce,
    stamp,
    stored,
    tiered_config,
    tiered_topic,
)
from tests.harness.tools import ToolRun, run_tool
from tests.harness.waiting import eventually


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("remote")


@pytest.fixture(scope="module")
def measured(folder: Path) -> Iterator[MeasuredCluster]:
    with measured_cluster(config=tiered_config(folder)) as measured:
        yield measured


@pytest.fixture(scope="module")
def cluster(measured: MeasuredCluster) -> Cluster:
    return measured.cluster


def filled(cluster: Cluster, folder: Path, topic: str, count: int = 55, **configs: Any) -> None:
    """Produce `count` records, and wait until all closed segments are only in the remote tier."""
    tiered_topic(cluster.bootstrap_servers, topic, **configs)
    produce(cluster.bootstrap_servers, topic, range(count))
    local_bytes = int(configs.get("local_retention_bytes", 1))
    left = 1 + local_bytes // (1 << 20)
    eventually(lambda: stored(folder, topic) and len(local(cluster.data_dir, topic)) <= left)


def offset(cluster: Cluster, topic: str, when: str) -> int:
    run = run_tool(
        "kafka-get-offsets",
        *("--bootstrap-server", cluster.bootstrap_servers, "--topic", topic, "--time", when),
    )
    assert run.code == 0, run.err
    return int(run.out.strip().rsplit(":", 1)[1])


def test_old_segments_are_read_from_the_remote_tier(cluster: Cluster, folder: Path, topic: str) -> None:
    filled(cluster, folder, topic)
    (first_local,) = local(cluster.data_dir, topic)
    remote = stored(folder, topic)
    assert remote[0] == 0
    assert 0 < remote[-1] < first_local
    for kind in ("index", "timeindex", "leader_epoch_checkpoint", "snapshot"):
        assert stored(folder, topic, kind) == remote
    assert consume(cluster.bootstrap_servers, topic, 0, 55) == list(range(55))
    assert consume(cluster.bootstrap_servers, topic, 13, 5)[:5] == list(range(13, 18))


def test_offsets_of_both_tiers(cluster: Cluster, folder: Path, topic: str) -> None:
    filled(cluster, folder, topic)
    (first_local,) = local(cluster.data_dir, topic)
    assert offset(cluster, topic, "earliest") == 0
    assert offset(cluster, topic, "earliest-local") == first_local
    assert offset(cluster, topic, "latest-tiered") == first_local - 1
    assert offset(cluster, topic, "latest") == 55
    assert offset(cluster, topic, str(stamp(7))) == 7
    assert offset(cluster, topic, str(stamp(54))) == 54


def test_tools_show_both_tiers(cluster: Cluster, folder: Path, topic: str) -> None:
    filled(cluster, folder, topic)
    (first_local,) = local(cluster.data_dir, topic)
    plain = f"{topic}-plain"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(plain, 1, 1)])[plain].result(30)
    tiers = f"Earliest: 0\tEarliestLocal: {first_local}\tLatestTiered: {first_local - 1}"
    assert describe(cluster, topic).endswith(f"\t{tiers}")
    assert "Earliest" not in describe(cluster, plain)
    run = run_tool(
        "kafka-log-dirs",
        *("--bootstrap-server", cluster.bootstrap_servers, "--describe", "--topic-list", f"{topic},{plain}"),
    )
    assert run.code == 0, run.err
    (directory,) = json.loads(run.out.splitlines()[-1])["brokers"][0]["logDirs"]
    replicas = {each.pop("partition"): each for each in directory["partitions"]}
    shown = {"earliestOffset": 0, "earliestLocalOffset": first_local, "latestTieredOffset": first_local - 1}
    assert shown.items() <= replicas[f"{topic}-0"].items()
    assert replicas[f"{plain}-0"].keys() == {"size", "offsetLag", "isFuture"}


def describe(cluster: Cluster, topic: str) -> str:
    """Return the line of the only partition."""
    run = run_tool(
        "kafka-topics", "--bootstrap-server", cluster.bootstrap_servers, "--describe", "--topic", topic
    )
    assert run.code == 0, run.err
    return run.out.splitlines()[-1]


def test_the_earliest_offset_that_is_not_uploaded(cluster: Cluster, folder: Path, topic: str) -> None:
    filled(cluster, folder, topic)
    (first_local,) = local(cluster.data_dir, topic)
    assert offset(cluster, topic, "earliest-pending-upload") == first_local
    assert alter(cluster, topic, "remote.log.copy.disable=true,local.retention.bytes=-2").code == 0
    produce(cluster.bootstrap_servers, topic, range(55, 85))
    assert len(local(cluster.data_dir, topic)) > 1
    # What cannot be copied is still to be uploaded.
    assert offset(cluster, topic, "earliest-pending-upload") == first_local
    assert offset(cluster, topic, "latest-tiered") == first_local - 1


def test_retention_covers_both_tiers(cluster: Cluster, folder: Path, topic: str) -> None:
    filled(cluster, folder, topic, count=85, retention_bytes=str(4 << 20), local_retention_bytes="1")
    start = eventually(lambda: offset(cluster, topic, "earliest"))
    eventually(lambda: stored(folder, topic)[0] == offset(cluster, topic, "earliest"))
    assert consume(cluster.bootstrap_servers, topic, start, 85 - start) == list(range(start, 85))


def test_deleted_records_leave_the_remote_tier(cluster: Cluster, folder: Path, topic: str) -> None:
    filled(cluster, folder, topic)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    before = TopicPartition(topic, 0, 25)
    assert admin.delete_records([before])[before].result(30).low_watermark == 25
    assert offset(cluster, topic, "earliest") == 25
    eventually(lambda: stored(folder, topic)[0] >= 20)
    assert consume(cluster.bootstrap_servers, topic, 25, 30) == list(range(25, 55))


def test_a_deleted_topic_leaves_nothing_in_the_store(cluster: Cluster, folder: Path, topic: str) -> None:
    filled(cluster, folder, topic)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(30)
    eventually(lambda: not list(folder.glob(f"kafka-tiered-storage/{topic}-*")))


def test_metrics_show_both_tiers(measured: MeasuredCluster, folder: Path, topic: str) -> None:
    filled(measured.cluster, folder, topic)
    assert len(consume(measured.cluster.bootstrap_servers, topic, 0, 55)) == 55
    prefix = "kafka_server_brokertopicmetrics_remote"
    copied = measured.sums(f"{prefix}copybytes_total", topic=topic)
    assert copied == sum(path.stat().st_size for path in folder.glob(f"*/{topic}-*/*.log"))
    assert measured.sums(f"{prefix}fetchbytes_total", topic=topic) == copied
    assert measured.sums(f"{prefix}copyrequests_total", topic=topic) == len(stored(folder, topic))
    eventually(lambda: measured.sums(f"{prefix}logsizebytes", topic=topic) == copied)
    assert measured.sums(f"{prefix}copylagsegments", topic=topic) == 0
    assert measured.sums(f"{prefix}fetcherrors_total", topic=topic) == 0


@pytest.mark.parametrize(
    ("configs", "reason"),
    [
        ({"cleanup_policy": "compact"}, "only supports topics with cleanup.policy=delete"),
        ({"retention_ms": "1000", "local_retention_ms": "2000"}, "must not be more than retention.ms"),
        ({"remote_log_copy_disable": "true"}, "must be set to the identical value"),
    ],
)
def test_what_tiered_storage_does_not_allow_is_refused(
    cluster: Cluster, topic: str, configs: dict[str, Any], reason: str
) -> None:
    with pytest.raises(KafkaException, match=reason):
        tiered_topic(cluster.bootstrap_servers, topic, **configs)


def test_disabling_deletes_what_is_remote(cluster: Cluster, folder: Path, topic: str) -> None:
    filled(cluster, folder, topic)
    (first_local,) = local(cluster.data_dir, topic)
    refused = alter(cluster, topic, "remote.storage.enable=false")
    assert "without deleting remote data" in refused.out + refused.err
    assert alter(cluster, topic, "remote.storage.enable=false,remote.log.delete.on.disable=true").code == 0
    eventually(lambda: not list(folder.glob(f"kafka-tiered-storage/{topic}-*")))
    assert offset(cluster, topic, "earliest") == first_local
    assert consume(cluster.bootstrap_servers, topic, first_local, 55 - first_local) == list(
        range(first_local, 55)
    )


def test_what_disabling_deleted_is_copied_again(cluster: Cluster, folder: Path, topic: str) -> None:
    filled(cluster, folder, topic, local_retention_bytes=str(4 << 20))
    kept = local(cluster.data_dir, topic)
    assert stored(folder, topic)[-1] > kept[0] > 0, "copied, and still on the local disk"
    deleting = "remote.log.delete.on.disable=true"
    assert alter(cluster, topic, f"remote.storage.enable=false,{deleting}").code == 0
    eventually(lambda: not list(folder.glob(f"kafka-tiered-storage/{topic}-*")))
    start = eventually(lambda: offset(cluster, topic, "earliest"))
    assert start == kept[0]
    assert alter(cluster, topic, "remote.storage.enable=true,local.retention.bytes=1").code == 0
    eventually(lambda: len(local(cluster.data_dir, topic)) == 1)
    assert stored(folder, topic) == kept[:-1]
    assert consume(cluster.bootstrap_servers, topic, start, 55 - start) == list(range(start, 55))


def test_nothing_is_copied_while_copying_is_disabled(cluster: Cluster, folder: Path, topic: str) -> None:
    filled(cluster, folder, topic)
    remote = stored(folder, topic)
    assert alter(cluster, topic, "remote.log.copy.disable=true,local.retention.bytes=-2").code == 0
    produce(cluster.bootstrap_servers, topic, range(55, 85))
    assert consume(cluster.bootstrap_servers, topic, 0, 85) == list(range(85))
    assert stored(folder, topic) == remote
    assert len(local(cluster.data_dir, topic)) > 1


def alter(cluster: Cluster, topic: str, configs: str) -> ToolRun:
    return run_tool(
        "kafka-configs",
        *("--bootstrap-server", cluster.bootstrap_servers, "--alter"),
        *("--entity-type", "topics", "--entity-name", topic, "--add-config", configs),
    )


def test_everything_is_there_after_a_crash(folder: Path, tmp_path: Path, topic: str) -> None:
    with Cluster(config=tiered_config(tmp_path)) as cluster:
        filled(cluster, tmp_path, topic)
        cluster.kill()
        cluster.restart()
        assert consume(cluster.bootstrap_servers, topic, 0, 55) == list(range(55))
        produce(cluster.bootstrap_servers, topic, range(55, 80))
        eventually(lambda: len(local(cluster.data_dir, topic)) == 1 and stored(tmp_path, topic)[-1] > 55)
        remote = stored(tmp_path, topic)
        assert len(remote) == len(set(remote))
        assert consume(cluster.bootstrap_servers, topic, 0, 80) == list(range(80))
