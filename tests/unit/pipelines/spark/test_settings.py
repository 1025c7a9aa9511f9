"""The settings of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.pipelines.spark.settings import (
    DRIVER_OPTIONS,
    java_options,
    local_cores,
    local_settings,
    merged,
)


@pytest.mark.parametrize(("master", "cores"), [("local", 1), ("local[3]", 3), ("local[ 2 , 4 ]", 2)])
def test_local_master_names_the_number_of_cores(master: str, cores: int) -> None:
    assert local_cores(master) == cores


@pytest.mark.parametrize(("gigabytes", "memory"), [(2, "1024m"), (8, "2048m"), (64, "4096m")])
def test_driver_memory_is_a_quarter_within_limits(gigabytes: int, memory: str) -> None:
    assert local_settings(2, gigabytes << 30)["spark.driver.memory"] == memory


def test_settings_of_the_caller_override_and_java_options_are_joined() -> None:
    ours = java_options(True, ["-XX:SharedArchiveFile=x"])
    config = {"spark.ui.enabled": "true", DRIVER_OPTIONS: "-Dmine=1"}
    settings = merged({"spark.ui.enabled": "false", "spark.a": "1"}, ours, config)
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.a"] == "1"
    assert settings[DRIVER_OPTIONS].endswith("-XX:TieredStopAtLevel=1 -XX:SharedArchiveFile=x -Dmine=1")
    logging = settings[DRIVER_OPTIONS].split()[0].partition("=")[2]
    assert Path(logging).is_file()
