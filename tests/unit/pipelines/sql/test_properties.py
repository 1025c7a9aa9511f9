"""The settings of SET."""

from __future__ import annotations

import pytest

from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.properties import Settings


def test_settings_accept_the_names_of_ksqldb() -> None:
    settings = Settings()
    assert settings.set("ksql.streams.auto.offset.reset", "earliest") == "auto.offset.reset is earliest."
    assert settings["auto.offset.reset"] == "earliest"
    assert settings.set("auto.offset.reset", None) == "auto.offset.reset is latest (default)."
    settings.set("processing.guarantee", "at_least_once")
    assert settings["exactly.once"] == "false"
    settings.set("processing.guarantee", "exactly_once_v2")
    assert settings["exactly.once"] == "true"
    assert "has no effect" in settings.set("ksql.query.pull.table.scan.enabled", "true")
    with pytest.raises(SqlError, match="Did you mean trigger"):
        settings.set("triger", "1 second")
    with pytest.raises(SqlError, match="'earliest' or 'latest'"):
        settings.set("auto.offset.reset", "first")
