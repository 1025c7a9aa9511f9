"""Native steps have the same results as steps in Python."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from moldau.pipelines.streams import Consumed, Materialized, Produced, StreamsBuilder
from moldau.pipelines.streams.chains.planner import Planner
from moldau.pipelines.streams.physical.chains import lower
from moldau.pipelines.streams.physical.native import NativeRows
from moldau.pipelines.streams.physical.ports import SCHEMA
from moldau.pipelines.streams.settings import StreamsSettings
from moldau.pipelines.streams.topology.stages import stages

SETTINGS = StreamsSettings.of({"application.id": "app", "bootstrap.servers": "nowhere:1"})


@pytest.mark.parametrize("python", [False, True])
def test_tables_and_the_steps_after_them_have_no_null_keys(spark: SparkSession, python: bool) -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed.with_("string", "string"))
    stream.to("all", Produced.with_("string", "string"))
    table = stream.to_table(materialized=Materialized.with_("string", "string", name="kept"))
    table.to_stream().to("after", Produced.with_("string", "string"))
    (stage,) = stages(builder.build().nodes)
    (chain,) = stage.before
    planner = Planner(SETTINGS, {})
    exits = {leaf: planner.leaf_exit(leaf, number) for number, leaf in enumerate(stage.leaves)}
    known = {leaf: leaving for leaf, leaving in exits.items() if leaving is not None}
    serdes = planner.origin_serdes(chain.origin)
    given = [(key, b"v", None, None, "in", 0, place, 0) for place, key in enumerate([b"k", None])]
    frame = spark.createDataFrame(given, SCHEMA).withColumn("timestamp", F.timestamp_millis(F.lit(5)))
    rows = NativeRows(frame, serdes.key, serdes.value)
    lowered = lower(rows, planner.program(chain, known, serdes), validate=python)
    assert lowered.python is python
    found = [(row["target"], row["key"]) for row in lowered.frame.collect()]
    assert sorted(found, key=str) == [
        ("after", b"k"),
        ("all", None),
        ("all", b"k"),
        ("app-kept-changelog", b"k"),
    ]
