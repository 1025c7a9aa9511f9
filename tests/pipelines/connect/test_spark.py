"""Tasks as long-lived Spark tasks: started, paused, restarted, lost to kill -9, and exactly once."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from moldau.testing import Cluster
from tests.harness.connect import Worker, lines_of
from tests.harness.mirror import values_of
from tests.harness.waiting import eventually
from tests.integration.connect.conftest import group_properties

#: A session starts within seconds, on a busy machine within minutes.
START_S = 150.0


@pytest.fixture
def worker(broker: Cluster, tmp_path: Path) -> Any:
    group = f"connect-{uuid.uuid4().hex[:8]}"
    properties = {
        **group_properties(broker.bootstrap_servers, group),
        "tasks.host": "spark",
        "spark.master": "local[8]",
        "exactly.once.source.support": "enabled",
    }
    with Worker(tmp_path, properties, command="connect-distributed") as worker:
        yield worker
        worker.kill()


def processes(worker: Worker, program: str) -> list[int]:
    """Return the processes below a worker that run `java` or `python`."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    children: dict[int, list[int]] = {}
    for pid, parent, _ in rows:
        children.setdefault(int(parent), []).append(int(pid))
    found, waiting = [], [worker.pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    arguments = {int(pid): text for pid, _, text in rows}
    return [each for each in found if program in arguments[each].partition(" ")[0]]


def test_exactly_once_through_kills_of_the_task_and_of_the_worker(
    broker: Cluster, worker: Worker, tmp_path: Path
) -> None:
    bootstrap = broker.bootstrap_servers
    topic = f"lines-{uuid.uuid4().hex[:8]}"
    source = {"connector.class": "FileStreamSource", "file": "in.txt", "topic": topic, "batch.size": "50"}
    lines = [f"line {number}" for number in range(2000)]
    (tmp_path / "in.txt").write_text("".join(f"{each}\n" for each in lines[:1000]))
    worker.create("in", {**source, "exactly.once.support": "required"})
    worker.create("out", {"connector.class": "FileStreamSink", "file": "out.txt", "topics": topic})
    worker.wait_for("in", timeout=START_S)
    eventually(lambda: len(values_of(bootstrap, topic)) >= 200, timeout=START_S, what=worker.log)
    for process in processes(worker, "python"):
        os.kill(process, signal.SIGKILL)
    worker.wait_for("in", timeout=START_S)
    worker.wait_for("out", timeout=START_S)
    with (tmp_path / "in.txt").open("a") as file:
        file.writelines(f"{each}\n" for each in lines[1000:])
    eventually(lambda: len(values_of(bootstrap, topic)) >= 1100, timeout=START_S, what=worker.log)
    worker.kill()
    worker.start()
    eventually(lambda: len(values_of(bootstrap, topic)) >= 2000, timeout=START_S, what=worker.log)
    # Nothing is lost, repeated or reordered.
    assert values_of(bootstrap, topic) == lines
    # The sink writes at least once.
    eventually(lambda: len(set(lines_of(tmp_path / "out.txt"))) == 2000, timeout=START_S, what=worker.log)
    worker.api("PUT", "/connectors/in/pause")
    worker.wait_for("in", "PAUSED", ["PAUSED"])
    worker.api("PUT", "/connectors/in/stop")
    worker.wait_for("in", "STOPPED", [])
    offsets = worker.api("GET", "/connectors/in/offsets").body["offsets"]
    assert offsets == [
        {"partition": {"filename": "in.txt"}, "offset": {"position": sum(map(len, lines)) + 2000}}
    ]


def test_a_worker_whose_spark_has_ended_exits(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    worker.create("in", {"connector.class": "FileStreamSource", "file": "in.txt", "topic": "ended"})
    worker.wait_for("in", timeout=START_S)
    for process in processes(worker, "java"):
        os.kill(process, signal.SIGKILL)
    assert worker.wait() == 1
    assert "Spark has ended" in worker.log
