"""Object storage in versitygw, an S3 server that checks signatures and assembles multipart uploads."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from moldau.local.ports import ReservedPorts
from moldau.testing import Cluster
from moldau.tiered.stores.objects import ObjectStore
from tests.harness.tiered.s3 import BUCKET, s3_configs
from tests.harness.tiered.segments import Source, segment
from tests.harness.tiered.worlds import consume, local, produce, tiered_config, tiered_topic
from tests.harness.waiting import eventually
from tests.interop.go_programs import installed

#: Building the server takes minutes.
pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

_PACKAGE, _VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = installed(_PACKAGE, _VERSION)
    root = tmp_path_factory.mktemp("versitygw")
    (root / BUCKET).mkdir()
    ports = ReservedPorts("127.0.0.1")
    address = f"127.0.0.1:{ports.choose()}"
    account = ("--access", "id", "--secret", "secret", "--region", "us-east-1")
    command = [str(program), "--port", address, *account, "--quiet", "posix", str(root)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    try:
        yield f"http://{address}"
    finally:
        server.kill()
        server.wait()
        ports.release()


def test_segments_are_uploaded_in_parts(endpoint: str) -> None:
    store = ObjectStore(s3_configs(endpoint, "parts"))
    source = Source(0, [bytes([n]) * 60_000 for n in range(200)])
    assert source.size > 2 * int(s3_configs(endpoint, "")["part.bytes"])
    item = segment(1, 0, 199, size=source.size)

    def copied() -> bool:
        store.copy(item, source)
        return True

    # The server may still be starting; the store repeats failed requests.
    eventually(copied)
    assert store.read_indexes(item) == source.indexes()
    assert store.read(item, 0, source.size) == source.data
    assert store.read(item, 7_000_000, 5000) == source.data[7_000_000:7_005_000]
    assert [each.id for each in store.segments() or ()] == [item.id]
    store.delete(item)
    assert list(store.segments() or ()) == []
    store.delete(item)


def test_a_broker_copies_reads_and_expires(endpoint: str, tmp_path: Path) -> None:
    configs = s3_configs(endpoint, "kafka")
    store = ObjectStore(configs)
    config = tiered_config(tmp_path) | {
        "remote.log.storage.manager.class.name": "moldau.tiered.stores.objects.ObjectStore",
        **{f"rsm.config.{name}": value for name, value in configs.items()},
    }
    with Cluster(config=config) as cluster:
        tiered_topic(cluster.bootstrap_servers, "t", segment_bytes=str(6 << 20))
        produce(cluster.bootstrap_servers, "t", range(200))
        eventually(lambda: len(local(cluster.data_dir, "t")) == 1)
        copied = {each.start_offset for each in store.segments() or ()}
        assert min(copied) == 0
        assert len(copied) >= 3
        assert consume(cluster.bootstrap_servers, "t", 0, 200) == list(range(200))
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        before = TopicPartition("t", 0, sorted(copied)[2])
        admin.delete_records([before])[before].result(30)
        eventually(lambda: min(each.start_offset for each in store.segments() or ()) == before.offset)
        admin.delete_topics(["t"])["t"].result(30)
        eventually(lambda: not list(store.segments() or ()))
