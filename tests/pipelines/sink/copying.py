"""A driver that copies a topic, to be killed: `python -m tests.pipelines.sink.copying SETTINGS_AS_JSON`.

It runs three queries, each with its own target: `plain` keeps partitions and order, `cut` shuffles without
state, `unique` has state. It prints that it has started, and with `to_end` exits when all records are copied.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from moldau import pipelines

PLANS = ("plain", "cut", "unique")


@dataclass(frozen=True)
class Settings:
    bootstrap_servers: str
    source: str
    #: The targets are `<target>-<plan>`.
    target: str
    folder: str
    cores: int = 2
    min_partitions: int = 3
    shuffle_partitions: int = 3
    per_trigger: int = 500
    to_end: bool = False
    master: str | None = None
    quick_start: bool = True

    def as_argument(self) -> str:
        return json.dumps(asdict(self))


def main(settings: Settings) -> None:
    spark = pipelines.session(
        "copying",
        master=settings.master or f"local[{settings.cores},4]",
        quick_start=settings.quick_start,
        config={"spark.sql.shuffle.partitions": str(settings.shuffle_partitions)},
    )
    spark.sparkContext.setLogLevel("ERROR")
    for plan in PLANS:
        pipelines.start(frame_of(spark, settings, plan), spec_of(settings, plan))
    print("started", flush=True)
    for query in spark.streams.active:
        query.awaitTermination()
    spark.stop()


def frame_of(spark: SparkSession, settings: Settings, plan: str) -> DataFrame:
    # More tasks than partitions would change the order of records with the same key.
    options = {"maxOffsetsPerTrigger": str(settings.per_trigger)}
    if plan != "plain":
        options["minPartitions"] = str(settings.min_partitions)
    rows = pipelines.stream_topic(spark, settings.bootstrap_servers, settings.source, options)
    columns = rows.select("key", "value", "partition")
    if plan == "cut":
        return columns.repartition("key")
    return columns if plan == "plain" else columns.drop("partition").dropDuplicates(["value"])


def spec_of(settings: Settings, plan: str) -> pipelines.QuerySpec:
    return pipelines.QuerySpec(
        name=f"{settings.target}-{plan}",
        bootstrap_servers=settings.bootstrap_servers,
        checkpoint=str(Path(settings.folder) / plan),
        topic=f"{settings.target}-{plan}",
        trigger={"availableNow": True} if settings.to_end else {"processingTime": "0 seconds"},
    )


if __name__ == "__main__":
    main(Settings(**json.loads(sys.argv[1])))
