"""Targets that are away when a connector or task starts: waits, and the reason in the status."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.connect import Worker, lines_of
from tests.harness.mirror import produce
from tests.harness.waiting import eventually
from tests.integration.connect.conftest import group_properties

MODULE = '''
from pathlib import Path

from moldau.pipelines.connect.config.definition import NO_DEFAULT, ConfigDef, ConfigType, Importance
from moldau.pipelines.connect.data.errors import ConnectError, RetriableError
from moldau.pipelines.connect.sdk import SinkConnector, SinkTask


def visit(config, place):
    """Fail at the place that the file `away` names."""
    found = Path(config["folder"], "away").read_text()
    if found == place:
        raise RetriableError(f"away in {place}")
    if found == f"broken {place}":
        raise ConnectError(f"broken in {place}")


class Target(SinkConnector):
    config = ConfigDef().define("folder", ConfigType.STRING, NO_DEFAULT, Importance.HIGH, "Folder.")

    def start(self, properties, context):
        super().start(properties, context)
        visit(properties, "connector")

    def task_configs(self, max_tasks):
        visit(self.properties, "planning")
        return [self.properties]

    def task(self):
        return TargetTask()


class TargetTask(SinkTask):
    def start(self, context):
        self.config, self.waiting = context.config, []
        visit(self.config, "start")

    def open(self, partitions):
        visit(self.config, "open")

    def put(self, records):
        visit(self.config, "put")
        self.waiting += records

    def flush(self, offsets):
        visit(self.config, "flush")
        with Path(self.config["folder"], "out").open("a") as file:
            file.writelines(f"{each.value}\\n" for each in self.waiting)
        self.waiting = []
'''


@pytest.fixture
def worker(bootstrap: str, group: str, tmp_path: Path) -> Iterator[Worker]:
    package = tmp_path / "package"
    metadata = package / "away-1.0.dist-info"
    metadata.mkdir(parents=True)
    (package / "away_connectors.py").write_text(MODULE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: away\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[moldau.connectors]\ntarget = away_connectors:Target\n")
    environment = {"PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])}
    properties = {**group_properties(bootstrap, group), "offset.flush.interval.ms": "100"}
    with Worker(tmp_path, properties, command="connect-distributed", environment=environment) as started:
        yield started


@pytest.mark.timeout(180)
@pytest.mark.parametrize("place", ["connector", "planning", "start", "open", "put", "flush"])
def test_a_target_that_is_away_is_waited_for(
    place: str, worker: Worker, bootstrap: str, group: str, tmp_path: Path
) -> None:
    topic = f"{group}-{place}"
    produce(bootstrap, topic, ["1", "2"])
    (tmp_path / "away").write_text(place)
    worker.create(place, {"connector.class": "target", "topics": topic, "folder": str(tmp_path)})
    of_connector = place in ("connector", "planning")

    def status() -> dict[str, Any] | None:
        body = worker.api("GET", f"/connectors/{place}/status").body
        if of_connector:
            found: dict[str, Any] | None = body.get("connector")
            return found
        return next(iter(body.get("tasks", ())), None)

    def reason() -> str | None:
        found = status()
        return None if found is None else found.get("trace")

    eventually(lambda: f"away in {place}" in (reason() or ""), timeout=30, what=worker.log)
    found = status()
    assert found is not None
    assert found["state"] == "RUNNING"
    (tmp_path / "away").write_text("nowhere")
    eventually(lambda: lines_of(tmp_path / "out") == ["1", "2"], timeout=30, what=worker.log)
    worker.wait_for(place)
    eventually(lambda: reason() is None, timeout=10)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("place", ["connector", "start"])
def test_an_error_that_does_not_pass_fails_at_once(
    place: str, worker: Worker, group: str, tmp_path: Path
) -> None:
    (tmp_path / "away").write_text(f"broken {place}")
    worker.create("broken", {"connector.class": "target", "topics": f"{group}-x", "folder": str(tmp_path)})
    expected = ("FAILED", []) if place == "connector" else ("RUNNING", ["FAILED"])
    eventually(lambda: worker.states("broken") == expected, timeout=30, what=worker.log)
