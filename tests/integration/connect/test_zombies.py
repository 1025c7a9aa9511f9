"""Tasks that do not stop in time: what they report and store later has no effect."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.connect import Worker, lines_of
from tests.harness.mirror import values_of
from tests.harness.waiting import eventually
from tests.integration.connect.conftest import group_properties

MODULE = '''
import threading
from pathlib import Path

from moldau.pipelines.connect.config.definition import NO_DEFAULT, ConfigDef, ConfigType, Importance
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.sdk import SourceConnector, SourceTask


class Numbers(SourceConnector):
    """Counts; a task with `hangs` hangs in its second poll until the file `release` exists."""

    config = (
        ConfigDef()
        .define("topic", ConfigType.STRING, NO_DEFAULT, Importance.HIGH, "Topic.")
        .define("folder", ConfigType.STRING, NO_DEFAULT, Importance.HIGH, "Folder.")
        .define("hangs", ConfigType.BOOLEAN, False, Importance.HIGH, "Whether it hangs.")
    )

    def task(self):
        return NumbersTask()


class NumbersTask(SourceTask):
    def start(self, context):
        self.context, self.folder = context, Path(context.config["folder"])
        self.last = (context.offset({"all": "numbers"}) or {"last": 0})["last"]
        self.hangs = context.config.get("hangs") == "true"
        self.name = f"{'hanging' if self.hangs else 'good'}"
        self.polls = 0
        self.note(f"{self.name} starts after {self.last}")

    def note(self, line):
        with (self.folder / "notes").open("a") as file:
            file.write(line + "\\n")

    def poll(self):
        self.polls += 1
        if self.hangs and self.polls == 2:
            threading.Thread(target=self.note_end, args=(threading.current_thread(),)).start()
            self.note(f"{self.name} hangs")
            while not (self.folder / "release").exists():
                threading.Event().wait(0.02)
        elif self.context.wait(0.02):
            return []
        self.last += 1
        return [SourceRecord(topic=self.context.config["topic"], value=str(self.last),
                             source_partition={"all": "numbers"}, source_offset={"last": self.last})]

    def note_end(self, thread):
        thread.join()
        self.note(f"{self.name} has ended")

    def stop(self):
        self.note(f"{self.name} stops")
'''


@pytest.fixture
def worker(request: pytest.FixtureRequest, bootstrap: str, group: str, tmp_path: Path) -> Iterator[Worker]:
    package = tmp_path / "package"
    metadata = package / "hanging-1.0.dist-info"
    metadata.mkdir(parents=True)
    (package / "hanging_connectors.py").write_text(MODULE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: hanging\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[moldau.connectors]\nnumbers = hanging_connectors:Numbers\n")
    environment = {"PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])}
    properties = {**group_properties(bootstrap, group), "task.shutdown.graceful.timeout.ms": "200"}
    properties["exactly.once.source.support"] = getattr(request, "param", "disabled")
    with Worker(tmp_path, properties, command="connect-distributed", environment=environment) as started:
        yield started
        started.kill()


def configuration(group: str, folder: Path, **more: str) -> dict[str, str]:
    return {"connector.class": "numbers", "topic": f"{group}-numbers", "folder": str(folder), **more}


def wait_for_note(worker: Worker, folder: Path, line: str) -> None:
    eventually(lambda: line in lines_of(folder / "notes"), what=f"{line}\n{worker.log}")


@pytest.mark.timeout(120)
def test_the_end_of_a_replaced_task_is_not_that_of_its_successor(
    worker: Worker, group: str, tmp_path: Path
) -> None:
    worker.create("own", configuration(group, tmp_path, hangs="true"))
    wait_for_note(worker, tmp_path, "hanging hangs")
    worker.create("own", configuration(group, tmp_path))
    eventually(lambda: len(lines_of(tmp_path / "notes")) == 3, what=worker.log)
    worker.wait_for("own")
    (tmp_path / "release").touch()
    wait_for_note(worker, tmp_path, "hanging has ended")
    assert worker.api("POST", "/connectors/own/tasks/0/restart").status == 204
    eventually(lambda: len([e for e in lines_of(tmp_path / "notes") if e.startswith("good starts")]) == 2)
    notes = [each.split(" after ")[0] for each in lines_of(tmp_path / "notes")]
    # A task is stopped before its successor starts; otherwise two would run.
    assert notes == [
        *("hanging starts", "hanging hangs", "good starts", "hanging stops", "hanging has ended"),
        *("good stops", "good starts"),
    ]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("worker", ["disabled", "enabled"], indirect=True)
def test_a_task_that_did_not_stop_in_time_does_not_replace_offsets_that_were_reset(
    worker: Worker, bootstrap: str, group: str, tmp_path: Path
) -> None:
    worker.create("own", configuration(group, tmp_path, hangs="true"))
    wait_for_note(worker, tmp_path, "hanging hangs")
    assert worker.api("PUT", "/connectors/own/stop").status == 204
    worker.wait_for("own", "STOPPED", [])
    answer = worker.api("DELETE", "/connectors/own/offsets")
    assert answer.status == 200, answer.body
    (tmp_path / "release").touch()
    wait_for_note(worker, tmp_path, "hanging has ended")
    assert worker.api("GET", "/connectors/own/offsets").body["offsets"] == []
    # Its last poll returned a second record.
    assert values_of(bootstrap, f"{group}-numbers") == ["1"]
    # The connector begins again.
    worker.create("own", configuration(group, tmp_path))
    assert worker.api("PUT", "/connectors/own/resume").status == 202
    wait_for_note(worker, tmp_path, "good starts after 0")
    worker.wait_for("own")
