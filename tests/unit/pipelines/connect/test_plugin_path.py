"""Packages in folders of plugin.path: their connectors, and the jars beside them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.pipelines.connect.plugin_path import jars
from moldau.pipelines.connect.plugins import Plugins, PluginType
from moldau.pipelines.connect.sdk import SinkConnector

MODULE = """
from moldau.pipelines.connect.sdk import SinkConnector


class Target(SinkConnector):
    version = "7.1"
"""


def package(folder: Path, name: str) -> None:
    metadata = folder / f"{name}-7.1.dist-info"
    metadata.mkdir(parents=True)
    (folder / f"{name}.py").write_text(MODULE)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 7.1\n")
    (metadata / "entry_points.txt").write_text(f"[moldau.connectors]\n{name} = {name}:Target\n")


@pytest.fixture(autouse=True)
def path() -> Iterator[None]:
    before = list(sys.path)
    yield
    sys.path[:] = before


def test_connectors_of_folders_are_found_and_imported(tmp_path: Path) -> None:
    package(tmp_path / "several" / "one", "plugin_one")
    package(tmp_path / "alone", "plugin_two")
    (tmp_path / "several" / "notes").mkdir()
    worker = {"plugin.path": f"{tmp_path}/several, {tmp_path}/alone,{tmp_path}/missing"}
    plugins = Plugins(worker=worker)
    for name in ("plugin_one", "plugin_two"):
        connector = plugins.connector(name)
        assert isinstance(connector, SinkConnector)
        assert connector.version == "7.1"
        assert [each.name for each in plugins.of(PluginType.SINK)].count(name) == 1


def test_jars_are_those_of_the_folders(tmp_path: Path) -> None:
    driver = tmp_path / "drivers"
    driver.mkdir()
    (driver / "postgresql.jar").touch()
    assert jars({"plugin.path": str(tmp_path)}) == [str(driver / "postgresql.jar")]
    assert jars({"plugin.path": str(driver)}) == [str(driver / "postgresql.jar")]
    assert jars({}) == []
    assert jars({"plugin.path": f"{tmp_path}/connect-file.jar"}) == []
