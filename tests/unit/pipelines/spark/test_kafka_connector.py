"""The jars of Spark's Kafka connector are found, or the error names the missing ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.pipelines.spark.kafka_connector import ConnectorMissing, connector_settings

PARTS = (
    "spark-sql-kafka-0-10_2.13-4.3.0.jar",
    "spark-token-provider-kafka-0-10_2.13-4.3.0.jar",
    "kafka-clients-3.9.2.jar",
    "commons-pool2-2.13.1.jar",
)


def test_error_names_the_missing_jars() -> None:
    with pytest.raises(ConnectorMissing) as caught:
        connector_settings({"spark.jars": f"/x/{PARTS[0]},/x/{PARTS[2]}"}, {}, "4.3.0")
    text = str(caught.value)
    assert "missing: spark-token-provider-kafka-0-10, commons-pool2" in text
    assert "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0" in text


def test_jars_are_named_one_by_one_by_folder_or_by_coordinates(tmp_path: Path) -> None:
    for part in PARTS:
        (tmp_path / part).touch()
    named = connector_settings({}, {"MOLDAU_OFFICIAL_JARS": str(tmp_path)}, "4.3.0")["spark.jars"].split(",")
    assert {Path(jar).name for jar in named} == set(PARTS)
    jars = ",".join(f"/x/{part}" for part in PARTS)
    assert connector_settings({"spark.jars": jars}, {}, "4.3.0") == {"spark.jars": jars}
    packages = {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"}
    assert connector_settings(packages, {}, "4.3.0") == {}
    assert connector_settings({}, {"MOLDAU_OFFICIAL_JARS": "download"}, "4.3.0") == packages
