"""The jars of Spark's Kafka connector (`format("kafka")`), for sessions with `connector="official"`.

The connector is not part of PySpark. Its jars are named by `spark.jars`, by `MOLDAU_OFFICIAL_JARS` (files or
folders, separated like a PATH), or by their Maven coordinates in `spark.jars.packages`, which Spark downloads
when the session starts. Nothing is downloaded unless requested.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

JARS_VARIABLE = "MOLDAU_OFFICIAL_JARS"
#: The value of the variable that makes Spark download the connector.
DOWNLOAD = "download"

#: The prefixes of the names of the required jars.
_PARTS = ("spark-sql-kafka-0-10", "spark-token-provider-kafka-0-10", "kafka-clients", "commons-pool2")


class ConnectorMissing(RuntimeError):
    """Spark's Kafka connector was requested, but not all of its jars are known."""


def coordinates(spark_version: str) -> str:
    """Return the Maven coordinates of the connector for a release of Spark."""
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark_version}"


def connector_settings(
    config: Mapping[str, str], environ: Mapping[str, str], spark_version: str
) -> dict[str, str]:
    """Return the settings that add the connector to a session."""
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
connector="official" needs the jars of Spark's Kafka connector; missing: {", ".join(missing)}. Set one of:
  config={{"spark.jars.packages": "{name}"}}   Spark downloads them
  config={{"spark.jars": "/path/a.jar,/path/b.jar"}}   all four jars, downloaded by you
  {JARS_VARIABLE}=/folder/with/jars   the same for every session ({JARS_VARIABLE}={DOWNLOAD}: downloaded)
Without `connector` the format `moldau` is used, which needs no jars."""
