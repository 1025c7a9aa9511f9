"""Steps that Spark computes itself, beside the same steps in Python."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from moldau.pipelines.streams import Consumed, Materialized, Produced, StreamsBuilder
from moldau.pipelines.streams.application.settings import StreamsSettings
from moldau.pipelines.streams.chains.planner import Planner
from moldau.pipelines.streams.physical.chains import lower
from moldau.pipelines.streams.physical.native import NativeRows
from moldau.pipelines.streams.physical.ports import SCHEMA
from moldau.pipelines.streams.topology.stages import stages

SETTINGS = StreamsSettings.of({"application.id": "app", "bootstrap.servers": "nowhere:1"})


@pytest.mark.parametrize("python", [False, True])
def test_nothing_without_a_key_is_in_a_table_or_behind_it(spark: SparkSession, python: bool) -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", Consumed.with_("string", "string"))
    stream.to("all", Produced.with_("string", "string"))
    table = stream.to_table(materialized=Materialized.with_("string", "string", name="kept"))
    table.to_stream().to("behind", Produced.with_("string", "string"))
    (stage,) = stages(builder.build().nodes)
    (leg,) = stage.before
    planner = Planner(SETTINGS, {})
    exits = {leaf: planner.leaf_exit(leaf, number) for number, leaf in enumerate(stage.leaves)}
    known = {leaf: leaving for leaf, leaving in exits.items() if leaving is not None}
    serdes = planner.origin_serdes(leg.origin)
    given = [(key, b"v", None, None, "in", 0, place, 0) for place, key in enumerate([b"k", None])]
    frame = spark.createDataFrame(given, SCHEMA).withColumn("timestamp", F.timestamp_millis(F.lit(5)))
    rows = NativeRows(frame, serdes.key, serdes.value)
    lowered = lower(rows, planner.program(leg, known, serdes), validate=python)
    assert lowered.python is python
    left = [(row["target"], row["key"]) for row in lowered.frame.collect()]
    assert sorted(left, key=str) == [
        ("all", None),
        ("all", b"k"),
        ("app-kept-changelog", b"k"),
        ("behind", b"k"),
    ]
