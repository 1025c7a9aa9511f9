"""A pipeline on a standalone cluster of two workers, one of which is killed with its executor."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from moldau.testing import Cluster
from moldau.testing.spark_cluster import SparkCluster
from tests.pipelines.runtime.topics import COMMAND, create, ids, orders, produce, wait_for

pytestmark = pytest.mark.timeout(600)

PIPELINE = """\
name: on-a-cluster
source: {topic: standalone-in, format: json, schema: "id LONG, amount DOUBLE",
         options: {maxOffsetsPerTrigger: 200}}
steps:
  - select: [id, amount * 2 AS twice]
sink: {topic: standalone-out, format: json, key: id}
trigger: 100 ms
"""
COUNT = 3000


def test_killed_worker_neither_loses_nor_duplicates_records(broker: Cluster, tmp_path: Path) -> None:
    servers = broker.bootstrap_servers
    create(servers, 2, "standalone-in", "standalone-out")
    (tmp_path / "p.yaml").write_text(PIPELINE)
    produce(servers, "standalone-in", orders(0, COUNT // 2))
    with SparkCluster(workers=2) as cluster:
        options = [f"--conf={name}={value}" for name, value in cluster.session_config.items()]
        command = [*COMMAND, "run", "p.yaml", "--bootstrap-server", servers, "--master", cluster.url]
        run = subprocess.Popen([*command, *options, "--quick-start"], cwd=tmp_path)
        try:
            wait_for(servers, "standalone-out", 200)
            cluster.kill_worker(0)
            produce(servers, "standalone-in", orders(COUNT // 2, COUNT))
            values = wait_for(servers, "standalone-out", COUNT)
        finally:
            run.terminate()
            assert run.wait(180) == 0
    assert ids(values) == list(range(COUNT))
