"""The files in `examples/cluster` start three nodes of Apache Kafka as they start three of Moldau."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.test_cluster import Files, free_ports
from tests.harness.apache.node import java_command
from tests.harness.tools import run_tool
from tests.harness.waiting import eventually
from tests.interop.java_oracle import jars

pytestmark = pytest.mark.interop

NODES = (1, 2, 3)


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    """Start three nodes of Apache Kafka on folders that Moldau's tool has formatted."""
    first = free_ports()
    files = Files(tmp_path / "cluster", first)
    identity = run_tool("kafka-storage", "random-uuid").out.strip()
    with ExitStack() as running:
        for number in NODES:
            file = files.folder / f"server-{number}.properties"
            file.write_text(file.read_text().replace("log.dirs=data", f"log.dirs={tmp_path}/data"))
            done = run_tool("kafka-storage", "format", "-t", identity, "-c", str(file))
            assert done.code == 0, done
            output = running.enter_context((tmp_path / f"{number}.log").open("wb"))
            command = java_command(jars(), "kafka.Kafka", str(file))
            process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
            running.callback(process.wait, 30)
            running.callback(process.kill)
        yield f"localhost:{first}"


def test_cluster_files_start_three_nodes_of_apache_kafka(bootstrap: str) -> None:
    def create() -> bool:
        return run_tool("kafka-topics", *create_words).code == 0

    create_words = (
        *("--bootstrap-server", bootstrap, "--create", "--if-not-exists", "--topic", "my-failsafe-topic"),
        *("--partitions", "13", "--replication-factor", "3"),
    )
    eventually(create, timeout=90, every=1, what="three brokers are registered")
    described = run_tool(
        "kafka-topics", "--bootstrap-server", bootstrap, "--describe", "--topic", "my-failsafe-topic"
    )
    assert described.out.count("Leader: ") == 13, described
