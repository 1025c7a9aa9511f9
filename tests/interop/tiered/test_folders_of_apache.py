"""Our broker continues on the folder of an Apache Kafka broker with tiered storage: its logs, its
`LocalTieredStorage` and its `__remote_log_metadata`."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster
from tests.harness.tiered.worlds import (
    consume,
    local,
    produce,
    stamp,
    stored,
    tiered_config,
    tiered_topic,
)
from tests.harness.tools import run_tool
from tests.harness.waiting import eventually
from tests.interop import jars

_TOPIC = "written-by-apache"
_INITIALIZED = "Initialized topic-based RLMM resources successfully"
_STORE = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"


def apache_config(remote: Path, jar: Path) -> dict[str, str]:
    return {
        **tiered_config(remote),
        "remote.log.storage.manager.class.name": _STORE,
        "remote.log.storage.manager.class.path": str(jar),
        "rsm.config.delete.on.close": "false",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "offsets.topic.replication.factor": "1",
    }


@pytest.mark.interop
def test_our_broker_continues_with_the_tiers_of_apache(libs: Path, tmp_path: Path) -> None:
    try:
        jar = jars.storage_test_jar()
    except jars.Missing as missing:
        pytest.skip(str(missing))
    data, remote = tmp_path / "node", tmp_path / "remote"
    remote.mkdir()
    config = apache_config(remote, jar)
    with ApacheCluster(data_dir=data, config=config, libs=libs) as apache:
        tiered_topic(apache.bootstrap_servers, _TOPIC)
        produce(apache.bootstrap_servers, _TOPIC, range(55))
        eventually(lambda: stored(remote, _TOPIC) and len(local(data, _TOPIC)) == 1, timeout=120)
    before = stored(remote, _TOPIC)
    (first_local,) = local(data, _TOPIC)
    with Cluster(data_dir=data, config=config) as cluster:
        servers = cluster.bootstrap_servers
        assert consume(servers, _TOPIC, 0, 55) == list(range(55))
        assert consume(servers, _TOPIC, 13, 5)[:5] == list(range(13, 18))
        for when, expected in (
            ("earliest", 0),
            ("earliest-local", first_local),
            ("latest-tiered", first_local - 1),
            (str(stamp(7)), 7),
        ):
            run = run_tool(
                "kafka-get-offsets", "--bootstrap-server", servers, "--topic", _TOPIC, "--time", when
            )
            assert run.out.strip() == f"{_TOPIC}:0:{expected}", run.err
        # It continues to copy where Apache Kafka stopped, into the same folder.
        produce(servers, _TOPIC, range(55, 85))
        eventually(lambda: len(local(data, _TOPIC)) == 1 and stored(remote, _TOPIC)[-1] > before[-1])
        after = stored(remote, _TOPIC)
        assert after[: len(before)] == before
        assert after == sorted(set(after))
        assert consume(servers, _TOPIC, 0, 85) == list(range(85))
    # And Apache Kafka reads what both have written, once it has read the metadata topic.
    with ApacheCluster(data_dir=data, config=config, libs=libs) as apache:
        eventually(lambda: apache.log_file.read_text().count(_INITIALIZED) == 2)
        assert consume(apache.bootstrap_servers, _TOPIC, 0, 85) == list(range(85))
