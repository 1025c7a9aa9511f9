"""Settings of a session, and what is said when Spark's own connector has no jars."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.pipelines.spark.official_connector import ConnectorMissing, connector_settings
from moldau.pipelines.spark.settings import (
    DRIVER_OPTIONS,
    java_options,
    local_cores,
    local_settings,
    merged,
)

PARTS = (
    "spark-sql-kafka-0-10_2.13-4.3.0.jar",
    "spark-token-provider-kafka-0-10_2.13-4.3.0.jar",
    "kafka-clients-3.9.2.jar",
    "commons-pool2-2.13.1.jar",
)


@pytest.mark.parametrize(("master", "cores"), [("local", 1), ("local[3]", 3), ("local[ 2 , 4 ]", 2)])
def test_cores_of_a_local_master(master: str, cores: int) -> None:
    assert local_cores(master) == cores


@pytest.mark.parametrize(("gigabytes", "memory"), [(2, "1024m"), (8, "2048m"), (64, "4096m")])
def test_the_driver_gets_a_part_of_the_memory(gigabytes: int, memory: str) -> None:
    assert local_settings(2, gigabytes << 30)["spark.driver.memory"] == memory


def test_the_caller_wins_and_java_options_add_up() -> None:
    ours = java_options(True, ["-XX:SharedArchiveFile=x"])
    config = {"spark.ui.enabled": "true", DRIVER_OPTIONS: "-Dmine=1"}
    settings = merged({"spark.ui.enabled": "false", "spark.a": "1"}, ours, config)
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.a"] == "1"
    assert settings[DRIVER_OPTIONS].endswith("-XX:TieredStopAtLevel=1 -XX:SharedArchiveFile=x -Dmine=1")
    logging = settings[DRIVER_OPTIONS].split()[0].partition("=")[2]
    assert Path(logging).is_file()


def test_the_official_connector_names_what_is_missing() -> None:
    with pytest.raises(ConnectorMissing) as caught:
        connector_settings({"spark.jars": f"/x/{PARTS[0]},/x/{PARTS[2]}"}, {}, "4.3.0")
    text = str(caught.value)
    assert "missing: spark-token-provider-kafka-0-10, commons-pool2" in text
    assert "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0" in text


def test_the_official_connector_from_jars_a_folder_or_by_name(tmp_path: Path) -> None:
    for part in PARTS:
        (tmp_path / part).touch()
    named = connector_settings({}, {"MOLDAU_OFFICIAL_JARS": str(tmp_path)}, "4.3.0")["spark.jars"].split(",")
    assert {Path(jar).name for jar in named} == set(PARTS)
    jars = ",".join(f"/x/{part}" for part in PARTS)
    assert connector_settings({"spark.jars": jars}, {}, "4.3.0") == {"spark.jars": jars}
    packages = {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"}
    assert connector_settings(packages, {}, "4.3.0") == {}
    assert connector_settings({}, {"MOLDAU_OFFICIAL_JARS": "download"}, "4.3.0") == packages
