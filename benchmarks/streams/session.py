"""The Spark session of the measured applications: two cores, and the heap that Kafka Streams gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAP = "2g"


def started(name: str) -> SparkSession:
    from moldau import pipelines

    return pipelines.session(name, master="local[2,4]", config={"spark.driver.memory": HEAP})
