"""Pipelines on Spark, through PySpark: data source and sink, streams, SQL, the pipeline runtime.

    from moldau import pipelines

    spark = pipelines.session("orders")
    orders = spark.readStream.format("moldau").option("subscribe", "orders").load()

The only package that imports `pyspark`, installed with `pip install "moldau[spark]"`. It accesses the cluster
only through the client, so it works with any cluster that speaks the Kafka protocol. Names are loaded on
first use, so that importing this package is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.pipelines.formats.registry.spark_schemas import avro_schema, protobuf_descriptor
    from moldau.pipelines.queries import QuerySpec, read_topic, start, stream_topic
    from moldau.pipelines.spark.session import register, session

__all__ = [
    "QuerySpec",
    "avro_schema",
    "protobuf_descriptor",
    "read_topic",
    "register",
    "session",
    "start",
    "stream_topic",
]

_HOMES = {
    "QuerySpec": "queries",
    "avro_schema": "formats.registry.spark_schemas",
    "protobuf_descriptor": "formats.registry.spark_schemas",
    "read_topic": "queries",
    "register": "spark.session",
    "session": "spark.session",
    "start": "queries",
    "stream_topic": "queries",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] == "moldau":
            raise
        raise ModuleNotFoundError(
            f'Pipelines need {missing.name}, which is not installed: pip install "moldau[spark]"',
            name=missing.name,
        ) from missing
