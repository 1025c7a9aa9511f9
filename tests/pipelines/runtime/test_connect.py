"""A pipeline on a Spark Connect server."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from moldau.local.ports import ReservedPorts
from moldau.testing import Cluster
from moldau.testing.spark_cluster import spark_class
from tests.harness.waiting import eventually
from tests.pipelines.runtime.topics import COMMAND, create, ids, orders, produce, wait_for

pytestmark = pytest.mark.timeout(600)

PIPELINE = """\
name: connected
source: {topic: connect-in, format: json, schema: "id LONG, amount DOUBLE"}
steps:
  - filter: id >= 10
sink: {topic: connect-out, format: json, key: id}
"""


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_pipeline_runs_on_a_spark_connect_server(broker: Cluster, tmp_path: Path) -> None:
    servers = broker.bootstrap_servers
    create(servers, 1, "connect-in", "connect-out")
    produce(servers, "connect-in", orders(0, 100))
    (tmp_path / "p.yaml").write_text(PIPELINE)
    ports = ReservedPorts("127.0.0.1")
    port = ports.choose()
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    server_class = "org.apache.spark.sql.connect.service.SparkConnectServer"
    submit = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", *words, "--class", server_class]
    server = spark_class([*submit, "spark-internal"], tmp_path / "server.log", memory="1g")
    try:
        eventually(lambda: listens(port) or server.poll() is not None, timeout=180, every=0.2)
        assert server.poll() is None, (tmp_path / "server.log").read_text()
        command = [*COMMAND, "run", "p.yaml", "--bootstrap-server", servers, "--available-now"]
        ran = subprocess.run([*command, "--master", f"sc://127.0.0.1:{port}"], cwd=tmp_path, timeout=300)
        assert ran.returncode == 0
        assert ids(wait_for(servers, "connect-out", 90)) == list(range(10, 100))
    finally:
        server.terminate()
        server.wait(60)
        ports.release()
