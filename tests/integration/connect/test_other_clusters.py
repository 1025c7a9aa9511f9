"""Connectors whose records go to another cluster than that of the workers (`producer.override.…`)."""

from __future__ import annotations

from pathlib import Path

from tests.harness.connect import lines_of
from tests.harness.mirror import values_of
from tests.harness.waiting import eventually
from tests.integration.conftest import StartNode
from tests.integration.connect.conftest import StartWorker

BOOTSTRAP = "producer.override.bootstrap.servers"


def test_offsets_stay_in_the_cluster_of_the_workers(
    group: str, start_worker: StartWorker, start_node: StartNode, tmp_path: Path
) -> None:
    other, topic, file = start_node(), f"{group}-lines", tmp_path / "in.txt"
    file.write_text("one\ntwo\n")
    worker = start_worker()
    source = {"connector.class": "FileStreamSource", "file": str(file), "topic": topic}
    worker.create("in", {**source, BOOTSTRAP: other.bootstrap_servers})
    worker.wait_for("in")
    stored = [{"partition": {"filename": str(file)}, "offset": {"position": 8}}]
    eventually(lambda: worker.api("GET", "/connectors/in/offsets").body["offsets"] == stored, what=worker.log)
    worker.kill()
    with file.open("a") as lines:
        lines.write("three\n")
    worker.start()
    # It continues after the stored offset.
    eventually(lambda: values_of(other.bootstrap_servers, topic) == ["one", "two", "three"], what=worker.log)
    assert lines_of(file) == ["one", "two", "three"]


def test_exactly_once_needs_the_cluster_of_the_workers(
    bootstrap: str, group: str, start_worker: StartWorker
) -> None:
    worker = start_worker(exactly_once_source_support="enabled")
    source = {
        "name": "in",
        "connector.class": "FileStreamSource",
        "file": "in.txt",
        "topic": f"{group}-lines",
    }

    def errors(servers: str) -> list[str]:
        url = "/connector-plugins/FileStreamSource/config/validate"
        body = worker.api("PUT", url, {**source, BOOTSTRAP: servers}).body
        return [error for each in body["configs"] for error in each["value"]["errors"]]

    assert errors(bootstrap) == []
    [error] = errors("elsewhere:9092")
    assert "part of the same transactions" in error
    body = {"name": "in", "config": {**source, BOOTSTRAP: "elsewhere:9092"}}
    eventually(lambda: worker.api("POST", "/connectors", body).status == 400, what=worker.log)
