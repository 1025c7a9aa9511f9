"""Connectors whose own code hangs: other connectors, validation and rebalances do not wait for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.harness.connect import Worker
from tests.harness.waiting import eventually
from tests.integration.connect.conftest import group_properties
from tests.integration.connect.test_distributed import datagen

MODULE = '''
import threading
from pathlib import Path

from moldau.pipelines.connect.config.definition import NO_DEFAULT, ConfigDef, ConfigType, Importance
from moldau.pipelines.connect.sdk import SourceConnector, SourceTask


class Hanging(SourceConnector):
    """Hangs at its start until the file exists."""

    config = ConfigDef().define("file", ConfigType.STRING, NO_DEFAULT, Importance.HIGH, "File.")

    def start(self, properties, context):
        super().start(properties, context)
        while not Path(properties["file"]).exists():
            threading.Event().wait(0.05)

    def task(self):
        return Waiting()


class Waiting(SourceTask):
    def start(self, context):
        self.context = context

    def poll(self):
        self.context.wait(1)
        return []
'''
#: More than the threads of an event loop's pool on any machine.
COUNT = 40


@pytest.mark.timeout(120)
def test_connectors_that_hang_delay_nothing_else(bootstrap: str, group: str, tmp_path: Path) -> None:
    package = tmp_path / "package"
    metadata = package / "hanging-1.0.dist-info"
    metadata.mkdir(parents=True)
    (package / "hanging_connectors.py").write_text(MODULE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: hanging\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[moldau.connectors]\nhanging = hanging_connectors:Hanging\n")
    environment = {"PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])}
    properties = {**group_properties(bootstrap, group), "task.shutdown.graceful.timeout.ms": "300"}
    released, command = tmp_path / "released", "connect-distributed"
    with Worker(tmp_path, properties, command=command, environment=environment) as first:
        names = [f"hanging-{number}" for number in range(COUNT)]
        for name in names:
            first.create(name, {"connector.class": "hanging", "file": str(released)})
        first.create("good", datagen(f"{group}-good"))
        first.wait_for("good", timeout=20)
        # The rebalance revokes connectors that hang.
        with Worker(tmp_path, properties, command=command, environment=environment) as second:
            second.create("more", datagen(f"{group}-more"))
            second.wait_for("more", timeout=20)
            released.touch()

            def spread() -> set[str]:
                statuses = [second.api("GET", f"/connectors/{name}/status").body for name in names]
                return {each["connector"]["worker_id"] for each in statuses if "connector" in each}

            eventually(lambda: spread() == {first.id, second.id}, what=first.log + second.log)
            for name in names:
                second.wait_for(name)
