"""Topics with known records, and streams that collect the records they read."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from moldau.client import AdminClient, NewTopic
from moldau.client.admin.client import checked

_numbers = itertools.count()


class Topics:
    """Creates and fills topics; records are written to given partitions in order."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.admin = AdminClient(bootstrap_servers)

    def create(self, partitions: int = 1, *, name: str | None = None, **configs: str) -> str:
        name = name or f"source-{next(_numbers)}"
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        checked(self.admin.create_topics([NewTopic(name, partitions, 1, configs=settings)]))
        return name

    def produce(self, topic: str, records: Iterable[Mapping[str, Any]], **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        producer = confluent_kafka.Producer({"bootstrap.servers": self.bootstrap_servers, **settings})
        for record in records:
            producer.produce(topic, **record)
        assert producer.flush(30) == 0

    def fill(self, topic: str, partition: int, *numbers: int) -> None:
        """Write records whose values are numbers."""
        self.produce(topic, [{"value": str(number), "partition": partition} for number in numbers])

    def close(self) -> None:
        self.admin.close()


def options(bootstrap_servers: str, given: Mapping[str, Any]) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": bootstrap_servers,
        **{name: str(value) for name, value in given.items()},
    }


def read(spark: SparkSession, topics: Topics, **given: Any) -> DataFrame:
    return spark.read.format("moldau").options(**options(topics.bootstrap_servers, given)).load()


def stream(spark: SparkSession, topics: Topics, **given: Any) -> DataFrame:
    wanted = {"startingOffsets": "earliest", **given}
    return spark.readStream.format("moldau").options(**options(topics.bootstrap_servers, wanted)).load()


class Collected:
    """The records that a streaming query has read, by batch."""

    def __init__(self) -> None:
        self.batches: list[list[Row]] = []
        #: How many tasks each batch had.
        self.tasks: list[int] = []

    def __call__(self, batch: DataFrame, _: int) -> None:
        self.tasks.append(batch.rdd.getNumPartitions())
        self.batches.append(batch.select("topic", "partition", "offset", "value").collect())

    @property
    def rows(self) -> list[Row]:
        return [row for batch in self.batches for row in batch]

    @property
    def values(self) -> list[int]:
        return [int(row.value) for row in self.rows]


def run_now(frame: DataFrame, checkpoint: Path, name: str = "q") -> Collected:
    """Run the query over all available records."""
    collected = Collected()
    writer = frame.writeStream.queryName(name).option("checkpointLocation", str(checkpoint))
    writer.foreachBatch(collected).trigger(availableNow=True).start().awaitTermination(60)
    return collected


@contextmanager
def running(frame: DataFrame, checkpoint: Path, name: str) -> Iterator[tuple[StreamingQuery, Collected]]:
    """Run the query until the block ends."""
    collected = Collected()
    writer = frame.writeStream.queryName(name).option("checkpointLocation", str(checkpoint))
    query = writer.foreachBatch(collected).trigger(processingTime="100 milliseconds").start()
    try:
        yield query, collected
    finally:
        query.stop()
