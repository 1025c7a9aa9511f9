"""The pipelines of the README run as written, until all input is processed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from moldau.client import AdminClient, Consumer, NewTopic, Producer
from moldau.testing import Cluster
from tests.docs.markdown import blocks, section
from tests.harness.waiting import eventually
from tests.pipelines.runtime.hosts import run_yaml

pytestmark = pytest.mark.timeout(600)

ADDRESS = "localhost:9092"
PART = section("README.md", "Pipelines on Spark")
#: A user stops them with Ctrl-C; here they end when all input is processed.
ENDLESS = {
    "spec).awaitTermination()": "spec).processAllAvailable()",
    "    streams.await_termination()": "    [query.processAllAvailable() for query in streams.queries]",
}


def script(address: str) -> str:
    text = "\n".join(found.text for found in blocks(PART) if found.language == "python")
    for endless, once in ENDLESS.items():
        assert endless in text
        text = text.replace(endless, once)
    return text.replace(ADDRESS, address)


def run(arguments: list[str], folder: Path) -> str:
    """Run Python with these arguments; its temporary files are in the folder."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def read(servers: str, topic: str, count: int) -> list[tuple[bytes | None, bytes]]:
    settings = {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"}
    found: list[tuple[bytes | None, bytes]] = []
    with Consumer(settings) as consumer:
        consumer.subscribe([topic])

        def complete() -> bool:
            found.extend((record.key, record.value) for record in consumer.poll(1.0))
            return len(found) >= count

        eventually(complete, timeout=120, what=f"{count} records in {topic}")
    return found


def test_python_of_the_readme_runs(tmp_path: Path) -> None:
    with Cluster() as node:
        servers = node.bootstrap_servers
        with AdminClient(servers) as admin:
            admin.create_topics([NewTopic(name, 1) for name in ("orders", "large-orders", "lines", "counts")])
        with Producer({"bootstrap.servers": servers}) as producer:
            for amount in (50, 150, 250):
                producer.send("orders", b'{"amount": %d}' % amount, b"k")
            producer.send("lines", b"to be or not to be")
        (tmp_path / "readme.py").write_text(script(servers))
        done = subprocess.run(
            [sys.executable, "readme.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert [value for _, value in read(servers, "large-orders", 2)] == [
            b'{"amount": 150}',
            b'{"amount": 250}',
        ]
        assert not (tmp_path / "data").exists(), "a broker does not accept other folders there"
        counts = {key: int.from_bytes(value, "big") for key, value in read(servers, "counts", 4)}
        assert counts == {b"to": 2, b"be": 2, b"or": 1, b"not": 1}


def test_yaml_pipeline_of_the_readme_runs(spark: SparkSession, tmp_path: Path) -> None:
    (definition,) = blocks(PART, "yaml")
    assert blocks(PART, "sh")[-1].text == "moldau pipeline run amounts.yaml\n"
    with Cluster() as node:
        servers = node.bootstrap_servers
        with AdminClient(servers) as admin:
            admin.create_topics([NewTopic("orders", 1)])
        with Producer({"bootstrap.servers": servers}) as producer:
            for value in (b"book", b'{"amount": 50}', b'{"amount": -1}'):
                producer.send("orders", value)
        found = run_yaml(spark, servers, tmp_path, f"{definition.text}trigger: available_now\n")
        assert (found["amounts"].state, found["amounts"].dead_letters) == ("finished", 2)
        assert [value for _, value in read(servers, "amounts", 1)] == [b'{"amount":50.0,"tax":10.0}']
        assert {value for _, value in read(servers, "orders-dead", 2)} == {b"book", b'{"amount": -1}'}


def test_sql_of_the_readme_runs(tmp_path: Path) -> None:
    (line,) = [
        line
        for found in blocks(PART)
        if found.language == "sh"
        for line in found.text.splitlines()
        if line.startswith("moldau sql")
    ]
    statements = line.removeprefix('moldau sql -e "').removesuffix('"')
    with Cluster() as node:
        place = ("--bootstrap-server", node.bootstrap_servers, "--state-dir", str(tmp_path))
        printed = run(["-m", "moldau.cli.main", "sql", "-e", statements, *place], tmp_path)
        assert "orders" in printed
