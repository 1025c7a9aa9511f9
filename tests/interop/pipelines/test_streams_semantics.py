"""The streams API compared with Kafka Streams: the same programs, the same records, the same tables.

Every scene is described as by Java and run on Moldau's broker and on Apache Kafka. `docs/STREAMS.md` lists
the intended differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from tests.harness.streams.results import recorded
from tests.harness.streams.scenes import (
    AGGREGATIONS,
    COGROUPS,
    FINALS,
    FOREIGN_JOINS,
    MORE_JOINS,
    NULLS,
    PROCESSORS,
    SCENES,
    STATELESS,
    STREAM_JOINS,
    TABLE_JOINS,
    TABLES,
)
from tests.interop.conftest import Node
from tests.interop.pipelines import streams_oracle
from tests.pipelines.streams.scene_runs import results, run_scenes

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

#: Each group of scenes is one application.
PROGRAMS = {
    "stateless": list(STATELESS),
    "aggregations": list(AGGREGATIONS),
    "stream joins": list(STREAM_JOINS),
    "tables": [*TABLE_JOINS, *TABLES, *PROCESSORS],
    "cogroups and foreign keys": [*COGROUPS, *FOREIGN_JOINS, *MORE_JOINS, *FINALS],
    "missing keys and values": list(NULLS),
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from moldau import pipelines

    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    session = pipelines.session("streams", quick_start=True, config=settings)
    yield session
    session.stop()


def test_recorded_results_are_those_of_kafka_streams() -> None:
    """Other tests compare with the recorded results."""
    found = streams_oracle.results()
    assert recorded() == {scene: written for scene, written in found.items() if written}


@pytest.mark.parametrize("scene", SCENES)
def test_description_is_that_of_kafka_streams(scene: str) -> None:
    builder = StreamsBuilder()
    SCENES[scene](builder)
    assert str(builder.build().describe()).splitlines() == streams_oracle.description(scene)


@pytest.mark.parametrize("broker", ["apache", "moldau"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_results_are_those_of_kafka_streams(
    program: str, broker: str, request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> None:
    """Applications on one broker do not share topics."""
    node: Node = request.getfixturevalue(broker)
    scenes, expected = PROGRAMS[program], recorded()
    run_scenes(spark, node.bootstrap_servers, scenes, tmp_path, halves=False)
    different = [scene for scene in scenes if results(node.bootstrap_servers, scene) != expected[scene]]
    assert different == []
