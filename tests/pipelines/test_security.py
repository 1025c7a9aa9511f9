"""Pipelines over SASL_SSL: the `kafka.*` options reach source, sink and SQL, and secrets are not shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.client import AdminClient, NewTopic, Producer, checked
from moldau.pipelines.queries import QuerySpec, read_topic, start, stream_topic
from moldau.pipelines.sql import SqlEngine
from tests.harness.security.every_listener import SecuredListeners, every_listener, write_properties
from tests.harness.security.secured_node import USERS
from tests.harness.tools import run_tool

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECRET = USERS["alice"]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredListeners]:
    with every_listener(tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture(scope="module")
def client(node: SecuredListeners) -> dict[str, str]:
    properties = node.properties("SASL_SSL", "SCRAM-SHA-512")
    with AdminClient(properties) as admin:
        checked(admin.create_topics([NewTopic(name, partitions=1) for name in ("orders", "copies")]))
    with Producer(properties) as producer:
        for number in range(10):
            producer.send("orders", b"%d" % number).result(20)
    return properties


def values(frame: DataFrame) -> list[int]:
    return sorted(int(row.value) for row in frame.select("value").collect())


def all_text(folder: Path) -> str:
    return "\n".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


def test_source_and_sink_log_in_and_show_no_secrets(
    spark: SparkSession,
    client: dict[str, str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    servers = client["bootstrap.servers"]
    options = {f"kafka.{name}": value for name, value in client.items() if name != "bootstrap.servers"}
    orders = stream_topic(spark, servers, "orders", options)
    spec = QuerySpec(
        "secured",
        servers,
        str(tmp_path / "checkpoint"),
        topic="copies",
        trigger={"availableNow": True},
        options=options,
    )
    query = start(orders.select("value"), spec)
    assert query.awaitTermination(120)
    copies = read_topic(spark, servers, "copies", options)
    assert values(copies) == list(range(10))
    orders.explain(True)
    query.explain(True)
    copies.explain(True)
    shown = [*capfd.readouterr(), repr(spec), *(str(each) for each in query.recentProgress)]
    shown += [all_text(tmp_path), str(copies._jdf.queryExecution().toString())]
    assert not [text for text in shown if SECRET in text]


def test_sql_logs_in(spark: SparkSession, client: dict[str, str], tmp_path: Path) -> None:
    config = {name: value for name, value in client.items() if name != "bootstrap.servers"}
    engine = SqlEngine(spark, client["bootstrap.servers"], state_dir=tmp_path, config=config, follow=False)
    try:
        text = "CREATE STREAM orders (v STRING) WITH (kafka_topic='orders', value_format='KAFKA');"
        assert len(list(engine.execute(text))) == 1
        assert engine.catalog.get("orders") is not None
    finally:
        engine.close()
    assert SECRET not in all_text(tmp_path)


def test_pipelines_take_the_properties_file(
    spark: SparkSession, client: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "copy.yaml"
    file.write_text(
        "name: copy\nsource:\n  topic: orders\nsinks:\n  - topic: from-yaml\n    options: {kafka.acks: all}\n"
    )
    config = {name: value for name, value in client.items() if name != "bootstrap.servers"}
    properties = write_properties(tmp_path / "client.properties", config)
    state = tmp_path / "state"
    argv = ("--bootstrap-server", client["bootstrap.servers"], "--command-config", properties)
    run = ("--available-now", "--quick-start", "--state-dir", str(state), "--tries", "1")
    done = run_tool("pipeline", "run", str(file), *argv, *run, timeout=150)
    assert done.code == 0, done
    options = {f"kafka.{name}": value for name, value in config.items()}
    assert values(read_topic(spark, client["bootstrap.servers"], "from-yaml", options)) == list(range(10))
    assert SECRET not in done.out + done.err + all_text(state)
