"""Joins, tables and processors write the records that Kafka Streams has written, also across a restart."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from moldau.pipelines.streams import StreamsException
from moldau.pipelines.streams.application.interactive_queries import (
    ReadOnlyKeyValueStore,
    ReadOnlyWindowStore,
)
from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster
from tests.harness.streams.results import recorded
from tests.pipelines.streams.scene_runs import results, run_scenes

SCENES = [
    "table-lookup-left",
    "table-outer-join",
    "table-aggregate",
    "process",
    "stream-outer-join",
    "global-left-join",
    "suppress-time",
    "tumbling",
    "cogroup-session",
    "forward",
]


def test_results_are_those_recorded_from_kafka_streams(
    spark: SparkSession, broker: Cluster | ApacheCluster, tmp_path: Path
) -> None:
    streams = run_scenes(spark, broker.bootstrap_servers, SCENES, tmp_path, halves=True)
    expected = recorded()
    for scene in SCENES:
        assert results(broker.bootstrap_servers, scene) == expected[scene], scene

    def texts(scene: str) -> dict[str, str]:
        return {
            bytes.fromhex(each.key).decode(): bytes.fromhex(each.value or "").decode()
            for each in expected[scene]
        }

    with streams.store("table-outer-join-store") as joined:
        assert isinstance(joined, ReadOnlyKeyValueStore)
        assert dict(joined.all()) == texts("table-outer-join")
    with streams.store("sums") as sums:
        emitted = [each for each in expected["process"] if not each.key.endswith("2d676f6e65")]
        latest = max(emitted, key=lambda each: int(each.timestamp))
        assert sums.get(bytes.fromhex(latest.key).decode()) == bytes.fromhex(latest.value or "").decode()
    with streams.store("names") as names:
        assert (names.get("v2"), names.get("v3")) != (None, None) and names.get("v0") is None
    with streams.store("tumbling-store") as windows:
        assert isinstance(windows, ReadOnlyWindowStore)
        found = {each.key.encode() + each.window.start.to_bytes(8): count for each, count in windows.all()}
        counted = {bytes.fromhex(each.key): int(each.value or "", 16) for each in expected["tumbling"]}
        assert found == counted
    with pytest.raises(StreamsException, match="sums"):
        streams.store("unknown")
