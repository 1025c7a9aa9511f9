"""A micro-batch is a span with its offsets, linked to the producers of its records."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from moldau.config.definition import ConfigError
from moldau.pipelines import register
from moldau.pipelines.queries import activate
from moldau.pipelines.spark.settings import TRACES_ENDPOINT
from moldau.testing import Cluster
from tests.harness.traces import trace_receiver, uninstall
from tests.pipelines.source.topics import Topics, run_now, stream

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPANS = ["b7ad6b7169203331", "2222222222222222"]


def test_micro_batches_are_spans_with_links(spark: SparkSession, broker: Cluster, tmp_path: Path) -> None:
    topics = Topics(broker.bootstrap_servers)
    topic = topics.create(2, name="traced")
    for partition, span in enumerate(SPANS):
        headers = [("traceparent", f"00-{TRACE}-{span}-01")]
        topics.produce(topic, [{"value": "1", "partition": partition, "headers": headers}] * 3)
    with trace_receiver() as receiver:
        # A session of its own: the listener stays in it.
        session = spark.newSession()
        activate(session)
        session.conf.set(TRACES_ENDPOINT, receiver.endpoint)
        register(session)
        read = run_now(stream(session, topics, subscribe=topic), tmp_path, "orders-per-minute")
        assert len(read.values) == 6
        [span] = receiver.named("process orders-per-minute")
    activate(spark)
    topics.close()
    assert (span.service, span.kind, span.parent_id) == ("moldau-pipelines", "CONSUMER", "")
    assert sorted(span.links) == sorted((TRACE, each) for each in SPANS)
    assert span.attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "micro-batch",
        "messaging.operation.type": "process",
        "messaging.destination.name": topic,
        "messaging.batch.message_count": 6,
        "moldau.query.name": "orders-per-minute",
        "moldau.query.batch": 0,
        "moldau.query.offsets": f"{topic}-0:0-3 {topic}-1:0-3",
    }
    assert 0 < span.end_ns - span.start_ns < 60_000_000_000


def test_without_the_extra_a_session_names_it(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    uninstall(monkeypatch, "moldau.pipelines.tracing")
    spark.conf.set(TRACES_ENDPOINT, "http://127.0.0.1:4318/v1/traces")
    try:
        with pytest.raises(ConfigError, match=r"pip install 'moldau\[otel\]'"):
            register(spark)
    finally:
        spark.conf.unset(TRACES_ENDPOINT)
