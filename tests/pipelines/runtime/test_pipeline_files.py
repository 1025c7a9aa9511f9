"""SQL scripts and streams applications as pipelines."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from moldau.testing import Cluster
from tests.harness.waiting import eventually
from tests.pipelines.runtime.hosts import host_of
from tests.pipelines.runtime.topics import committed, create, orders, produce

pytestmark = pytest.mark.timeout(400)

SCRIPT = """\
SET 'auto.offset.reset' = 'earliest';
CREATE STREAM host_orders (id BIGINT, amount DOUBLE) WITH (kafka_topic='host-sql-in', value_format='JSON');
CREATE STREAM host_large WITH (kafka_topic='host-sql') AS SELECT * FROM host_orders WHERE amount >= 20;
"""
APPLICATION = """\
from moldau.pipelines.streams import KafkaStreams, StreamsBuilder

builder = StreamsBuilder()
builder.stream("host-sql-in").to("host-streams")
config = {{"application.id": "host-app", "bootstrap.servers": "{servers}", "state.dir": "{folder}",
          "default.key.serde": "bytes", "default.value.serde": "bytes"}}
application = KafkaStreams(builder.build(), config)
"""


def test_sql_scripts_and_streams_applications_are_hosted(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    servers = broker.bootstrap_servers
    create(servers, 1, "host-sql-in", "host-streams", "host-sql")
    produce(servers, "host-sql-in", [b"not JSON", *orders(0, 30)])
    (tmp_path / "large.sql").write_text(SCRIPT)
    text = APPLICATION.format(servers=servers, folder=tmp_path / "app")
    (tmp_path / "host_application.py").write_text(text)
    files = [tmp_path / "large.sql", tmp_path / "host_application.py"]
    host = host_of(spark, servers, tmp_path, files)
    assert [each.status.name for each in host.hosted] == ["large", "host-app"]

    def copied() -> bool:
        host.tick(time.monotonic())
        counts = [len(committed(servers, topic)) for topic in ("host-sql", "host-streams")]
        return counts == [10, 31]

    try:
        eventually(copied, timeout=180, every=0.3, what=str([each.status for each in host.hosted]))
    finally:
        host.stop()
    assert [each.status.state for each in host.hosted] == ["stopped", "stopped"]
