"""Runs scenes as one application, optionally in two halves: the second half runs in a new application that
resumes from the state of the first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from moldau.pipelines.streams import KafkaStreams, StreamsBuilder
from tests.harness.streams.inputs import inputs, topics
from tests.harness.streams.results import Written, comparable, read, recorded
from tests.harness.streams.scenes import FOR_EVER, SCENES
from tests.harness.wire.requests import create_and_wait


def run_scenes(
    spark: SparkSession, bootstrap_servers: str, scenes: Sequence[str], folder: Path, *, halves: bool
) -> KafkaStreams:
    """Run the scenes, and return the application, which has ended."""
    for topic in {topic for scene in scenes for topic in [*topics(scene), *results_topics(scene)]}:
        create_and_wait(bootstrap_servers, topic, 1, FOR_EVER)
    for half in (0, 1) if halves else (None,):
        send(bootstrap_servers, scenes, half)
        streams = application(spark, bootstrap_servers, scenes, folder)
        streams.run_available()
    return streams


def application(
    spark: SparkSession, bootstrap_servers: str, scenes: Sequence[str], folder: Path
) -> KafkaStreams:
    builder = StreamsBuilder()
    for scene in scenes:
        SCENES[scene](builder)
    config = {
        "application.id": f"scenes-{scenes[0]}",
        "bootstrap.servers": bootstrap_servers,
        "state.dir": str(folder),
    }
    return KafkaStreams(builder.build(), config, spark)


def send(bootstrap_servers: str, scenes: Sequence[str], half: int | None) -> None:
    """Produce the inputs of scenes, all or one half of them."""
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for scene in scenes:
        records = inputs(scene)
        middle = len(records) // 2
        for record in records if half is None else (records[:middle], records[middle:])[half]:
            producer.produce(record.topic, record.value, record.key, timestamp=record.timestamp)
    assert producer.flush(30) == 0


def results_topics(scene: str) -> list[str]:
    return sorted({each.topic for each in recorded()[scene]})


def results(bootstrap_servers: str, scene: str) -> list[Written]:
    return comparable(scene, read(bootstrap_servers, results_topics(scene)))
