"""Spark's own Kafka connector (`format("kafka")`), for those who want its Real-Time mode.

It is no part of PySpark: it comes as jars, named by `spark.jars`, by `MOLDAU_OFFICIAL_JARS` (files or
folders, separated like a path), or by their coordinates in `spark.jars.packages`, which Spark resolves
itself at the start. Nothing is downloaded unless that was asked for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

JARS_VARIABLE = "MOLDAU_OFFICIAL_JARS"
#: The value of the variable that asks Spark to download the connector.
DOWNLOAD = "download"

#: The first words of the names of the jars that must be there together.
_PARTS = ("spark-sql-kafka-0-10", "spark-token-provider-kafka-0-10", "kafka-clients", "commons-pool2")


class ConnectorMissing(RuntimeError):
    """Spark's own connector was asked for, and its jars were not named."""


def coordinates(spark_version: str) -> str:
    """The connector's name in Maven's repositories, for a release of Spark."""
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark_version}"


def connector_settings(
    config: Mapping[str, str], environ: Mapping[str, str], spark_version: str
) -> dict[str, str]:
    """The settings that bring the connector into a session."""
    if "kafka-0-10" in config.get("spark.jars.packages", ""):
        return {}
    jars = [jar for jar in config.get("spark.jars", "").split(",") if jar]
    if _missing(jars):
        named = environ.get(JARS_VARIABLE, "")
        if named == DOWNLOAD:
            return {"spark.jars.packages": coordinates(spark_version)}
        jars += _jars_of(named)
    missing = _missing(jars)
    if missing:
        raise ConnectorMissing(_explanation(missing, spark_version))
    return {"spark.jars": ",".join(jars)}


def _missing(jars: list[str]) -> list[str]:
    names = [jar.rpartition("/")[2] for jar in jars]
    return [part for part in _PARTS if not any(name.startswith(part) for name in names)]


def _jars_of(named: str) -> list[str]:
    jars = []
    for entry in filter(None, named.split(os.pathsep)):
        path = Path(entry)
        jars += [str(jar) for jar in sorted(path.glob("*.jar"))] if path.is_dir() else [entry]
    return jars


def _explanation(missing: list[str], spark_version: str) -> str:
    name = coordinates(spark_version)
    return f"""\
connector="official" is Spark's own Kafka connector, no part of PySpark; missing: {", ".join(missing)}.
  config={{"spark.jars.packages": "{name}"}}   Spark downloads it at the start
  config={{"spark.jars": "/path/a.jar,/path/b.jar"}}   jars that are there, the four of them
  {JARS_VARIABLE}=/folder/with/jars   the same for every session ({JARS_VARIABLE}={DOWNLOAD}: downloaded)
Without `connector` the format `moldau` is used, which needs no jars."""
