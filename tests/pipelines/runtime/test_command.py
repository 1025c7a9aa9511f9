"""The command `moldau pipeline`: several pipelines in one driver, monitored and stopped from another process,
with the driver killed while it runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from moldau.testing import Cluster
from tests.harness.prometheus import figures
from tests.harness.waiting import eventually
from tests.pipelines.runtime.topics import COMMAND, committed, create, ids, orders, produce, wait_for

ORDERS = """\
name: orders
source: {topic: command-in, format: json, schema: "id LONG, amount DOUBLE",
         options: {maxOffsetsPerTrigger: 300}}
checks:
  - {name: positive, expect: amount >= 0, on_fail: dead_letter}
  - {name: known, expect: id < 5000, on_fail: drop}
steps:
  - python: own.py:twice
  - sql: SELECT id, twice, record FROM input WHERE twice >= 0
sinks:
  - {topic: command-out, format: json}
  - {format: parquet, path: files}
dead_letter: command-dead
trigger: 200 ms
---
name: broken
source: {topic: command-in}
steps:
  - filter: no_such_column = 1
sink: {topic: command-out}
"""
OWN = """\
from moldau.pipelines import stream_topic
from moldau.pipelines.runtime import pipeline


def twice(frame):
    return frame.withColumn("twice", frame.amount * 2)


@pipeline("copy", topic="command-copy")
def copy(spark, context):
    return stream_topic(spark, context.bootstrap_servers, "command-in").select("key", "value")
"""
COUNT = 2000

pytestmark = pytest.mark.timeout(600)


def call(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, **variables},
    )


def status_of(folder: Path, name: str) -> dict[str, Any]:
    answer = call(folder, "status", name, "--json").stdout
    found: dict[str, Any] = json.loads(answer) if answer else {}
    return found


def _runs_in_another(folder: Path, name: str, driver: int) -> bool:
    status = status_of(folder, name)
    return status["state"] == "running" and status["driver"] != driver


def test_pipelines_survive_the_death_of_their_driver(broker: Cluster, tmp_path: Path) -> None:
    servers = broker.bootstrap_servers
    create(servers, 2, "command-in", "command-out", "command-dead", "command-copy")
    (tmp_path / "orders.yaml").write_text(ORDERS)
    (tmp_path / "own.py").write_text(OWN)
    bad = [b"nonsense", b'{"id": 1, "amount": -1}', b'{"id": 9999, "amount": 1}']
    produce(servers, "command-in", [*orders(0, COUNT), *bad])
    command = [*COMMAND, "run", "orders.yaml", "own.py", "--bootstrap-server", servers, "--quick-start"]
    run = subprocess.Popen([*command, "--metrics-port=0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    try:
        metrics = run.stdout.readline().split()[-1]
        wait_for(servers, "command-out", 300)
        before = status_of(tmp_path, "orders")
        assert before["sinks"] == [
            {"topic": "command-out", "role": "sink"},
            {"format": "parquet", "path": "files"},
            {"topic": "command-dead", "role": "dead letters"},
        ]
        assert status_of(tmp_path, "copy")["sinks"] == [{"topic": "command-copy", "role": "sink"}]
        lag = ("moldau_pipeline_lag_records", "0", "orders", "orders", "command-in")
        failed = ("moldau_pipeline_state", "broken", "failed")
        eventually(lambda: lag in (found := figures(metrics)) and found[failed] == 1, timeout=120)
        os.kill(before["driver"], signal.SIGKILL)
        values = wait_for(servers, "command-out", COUNT)
        eventually(lambda: len(committed(servers, "command-copy")) >= COUNT + 3, timeout=180, every=0.5)
        for name in ("orders", "copy"):
            eventually(lambda name=name: _runs_in_another(tmp_path, name, before["driver"]), timeout=180)
        stopped = call(tmp_path, "stop", "copy")
        assert stopped.stdout == "copy is stopped\n"
        listed = [line.split()[:2] for line in call(tmp_path, "list").stdout.splitlines()[1:]]
        assert listed == [["broken", "failed"], ["copy", "stopped"], ["orders", "running"]]
        assert "no_such_column" in call(tmp_path, "status", "broken").stdout
        again = call(tmp_path, "run", "own.py", "--bootstrap-server", servers)
        assert (again.returncode, "copy is already run by process" in again.stdout) == (1, True)
    finally:
        run.send_signal(signal.SIGINT)
        printed = run.communicate(timeout=180)[0]
    assert "The driver was killed by SIGKILL and restarts" in printed
    assert run.returncode == 1  # one pipeline has failed
    assert ids(values) == list(range(COUNT))
    assert len(committed(servers, "command-copy")) == COUNT + 3
    dead = {value: headers for _, value, headers in committed(servers, "command-dead")}
    assert set(dead) == set(bad[:2])
    assert dead[bad[0]]["__connect.errors.stage"] == b"VALUE_CONVERTER"
    assert dead[bad[1]]["__connect.errors.exception.message"] == b"expected amount >= 0"
    assert status_of(tmp_path, "orders")["state"] == "stopped"


def test_invalid_definition_is_reported_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("name: a\nsource: {topic: in}\nsnk: {topic: out}\n")
    checked = call(tmp_path, "check", "p.yaml")
    message = "p.yaml:3: pipeline has no key 'snk'; did you mean 'sink'?"
    assert (checked.returncode, message in checked.stderr) == (1, True)
    ran = call(tmp_path, "run", "p.yaml")
    assert (ran.returncode, message in ran.stdout) == (1, True)
    nothing = call(tmp_path, "status", "nobody")
    assert (nothing.returncode, nothing.stderr) == (
        1,
        "There is no pipeline nobody in state/pipelines; there are: none\n",
    )


def test_missing_java_is_reported_without_a_retry(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("name: a\nsource: {topic: in}\nsink: {topic: out}\n")
    ran = call(tmp_path, "run", "p.yaml", JAVA_HOME="/nowhere")
    assert ran.returncode == 1
    assert ran.stdout.startswith("JAVA_HOME is /nowhere, which is not a Java installation.")
    assert "restarts" not in ran.stdout
