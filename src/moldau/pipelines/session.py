"""A Spark session made for pipelines, and the format `moldau` in any session."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Literal

from pyspark.sql import SparkSession

from moldau.pipelines.data_source import MoldauDataSource
from moldau.pipelines.queries import CONNECTOR
from moldau.pipelines.sink.pinning import keep_tasks

#: A failed task is tried again, which Spark does not do in local mode unless told.
LOCAL_MASTER = "local[*,4]"


def session(
    name: str = "moldau",
    *,
    master: str = LOCAL_MASTER,
    connector: Literal["moldau", "official"] = "moldau",
    quick_start: bool = False,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session with the settings that pipelines want; `config` comes last and wins."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).master(master)
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        CONNECTOR: connector,
        **(config or {}),
    }
    if quick_start:
        settings.setdefault("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def register(spark: SparkSession) -> None:
    """Make the format `moldau` known to a session."""
    spark.dataSource.register(MoldauDataSource)
    keep_tasks(spark)
