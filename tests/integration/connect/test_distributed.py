"""Distributed workers: state in topics, forwarding, rebalances, and work that moves when a worker dies."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.harness.connect import Worker, lines_of
from tests.harness.mirror import read_all
from tests.harness.waiting import eventually
from tests.integration.conftest import StartNode
from tests.integration.connect.conftest import StartWorker, group_properties


def datagen(topic: str, tasks: int = 1, **settings: str) -> dict[str, str]:
    return {
        "connector.class": "io.confluent.kafka.connect.datagen.DatagenConnector",
        "kafka.topic": topic,
        "quickstart": "users",
        "max.interval": "20",
        "tasks.max": str(tasks),
        **settings,
    }


def owners(worker: Worker, name: str) -> list[str]:
    """Return the workers of the running tasks."""
    body: Any = worker.api("GET", f"/connectors/{name}/status").body
    return [each["worker_id"] for each in body.get("tasks", []) if each["state"] == "RUNNING"]


def test_state_is_stored_in_topics_and_survives_kill_9(
    bootstrap: str, group: str, start_worker: StartWorker, tmp_path: Path
) -> None:
    source = {"connector.class": "FileStreamSource", "file": "in.txt", "topic": f"{group}-lines"}
    sink = {"connector.class": "FileStreamSink", "file": "out.txt", "topics": f"{group}-lines"}
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    written = tmp_path / "out.txt"
    worker = start_worker()
    assert worker.create("in", source).status == 201
    worker.create(f"{group}-out", sink)
    worker.wait_for("in")
    eventually(lambda: lines_of(written) == ["one", "two"], what=worker.log)
    read = lambda: worker.api("GET", "/connectors/in/offsets").body["offsets"]  # noqa: E731
    eventually(lambda: read() == [{"partition": {"filename": "in.txt"}, "offset": {"position": 8}}])
    eventually(lambda: worker.api("GET", f"/connectors/{group}-out/offsets").body["offsets"] != [])
    worker.kill()
    with (tmp_path / "in.txt").open("a") as file:
        file.write("three\n")
    worker.start()
    eventually(lambda: lines_of(written)[-1:] == ["three"], what=worker.log)
    assert sorted(set(lines_of(written))) == ["one", "three", "two"]

    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = admin.list_topics(timeout=10).topics
    counts = {each: len(topics[f"{group}-{each}"].partitions) for each in ("configs", "offsets", "status")}
    assert counts == {"configs": 1, "offsets": 3, "status": 2}
    resource = ConfigResource(ResourceType.TOPIC, f"{group}-configs")
    configs = admin.describe_configs([resource])[resource].result()
    assert configs["cleanup.policy"].value == "compact"
    records = {each.key().decode(): each.value() for each in read_all(bootstrap, f"{group}-configs")}
    assert json.loads(records["connector-in"])["properties"] == {**source, "name": "in"}
    assert json.loads(records["commit-in"]) == {"tasks": 1}
    assert json.loads(records["task-in-0"])["properties"]["task.class"].endswith("FileStreamSourceTask")
    assert worker.api("DELETE", "/connectors/in").status == 204
    eventually(lambda: worker.states("in")[0] == "404")
    records = {each.key().decode(): each.value() for each in read_all(bootstrap, f"{group}-configs")}
    assert records["connector-in"] is None
    assert records["target-state-in"] is None


def test_workers_share_the_work_and_take_over_that_of_a_dead_one(
    group: str, start_worker: StartWorker
) -> None:
    first = start_worker()
    first.create("gen", datagen(f"{group}-gen", tasks=4))
    first.wait_for("gen", tasks=["RUNNING"] * 4)
    second = start_worker()

    def spread() -> bool:
        found = owners(second, "gen")
        return sorted(found) == sorted([first.id, second.id] * 2)

    eventually(spread, what=first.log + second.log)
    # Any worker answers; what only the leader, or the owner, can do is forwarded.
    for worker in (first, second):
        name = f"on-{worker.port}"
        worker.create(name, datagen(f"{group}-{worker.port}"))
        first.wait_for(name)
        assert worker.api("POST", f"/connectors/{name}/tasks/0/restart").status == 204
        assert worker.api("POST", f"/connectors/{name}/restart").status == 204
        assert worker.api("POST", f"/connectors/{name}/restart?includeTasks=true").status == 202
        first.wait_for(name)
        assert worker.api("PUT", f"/connectors/{name}/pause").status == 202
        second.wait_for(name, "PAUSED", ["PAUSED"])
    dead, alive = first, second
    dead.kill()
    started = time.monotonic()
    eventually(lambda: owners(alive, "gen") == [alive.id] * 4, what=alive.log)
    assert time.monotonic() - started < 40
    assert alive.api("GET", "/connectors").body == ["gen", f"on-{first.port}", f"on-{second.port}"]
    assert alive.create("later", datagen(f"{group}-later")).status == 201
    alive.wait_for("later")


def test_a_worker_continues_after_an_outage_of_the_brokers(start_node: StartNode, tmp_path: Path) -> None:
    node = start_node()
    settings = group_properties(node.bootstrap_servers, "connect-cluster")
    worker = Worker(tmp_path, settings, command="connect-distributed")
    (tmp_path / "in.txt").write_text("".join(f"{number}\n" for number in range(500)))
    try:
        worker.start()
        worker.create("in", {"connector.class": "FileStreamSource", "file": "in.txt", "topic": "lines"})
        worker.create("out", {"connector.class": "FileStreamSink", "file": "out.txt", "topics": "lines"})
        written = tmp_path / "out.txt"
        eventually(lambda: len(lines_of(written)) >= 500, what=worker.log)
        node.kill()
        with (tmp_path / "in.txt").open("a") as file:
            file.writelines(f"{number}\n" for number in range(500, 1000))
        # Longer than the session of the worker, which stops its tasks.
        eventually(lambda: "has lost its place" in worker.log, what=worker.log)
        node.start()
        eventually(lambda: len(set(lines_of(written))) == 1000, what=worker.log)
        assert worker.states("in") == ("RUNNING", ["RUNNING"])
        worker.create("later", datagen("later"))
        worker.wait_for("later")
    finally:
        worker.kill()


def test_a_name_is_given_to_one_connector_only(group: str, start_worker: StartWorker) -> None:
    worker = start_worker()
    worker.create("first", datagen(f"{group}-first"))
    worker.wait_for("first")
    body = {"name": "same", "config": datagen(f"{group}-same"), "initial_state": "STOPPED"}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: worker.api("POST", "/connectors", body), range(8)))
    assert sorted(each.status for each in answers) == [201] + [409] * 7
    assert worker.api("POST", "/connectors", body).body["message"] == "Connector same already exists"


def test_internal_requests_need_the_signature_of_a_worker(group: str, start_worker: StartWorker) -> None:
    worker = start_worker()
    worker.create("gen", datagen(f"{group}-gen"))
    worker.wait_for("gen")
    answer = worker.api("POST", "/connectors/gen/tasks", [{"a": "b"}])
    assert (answer.status, answer.body["message"]) == (400, "Internal request missing required signature")
    headers = {"X-Connect-Authorization": "AAAA", "X-Connect-Request-Signature-Algorithm": "HmacSHA256"}
    status, body, _ = worker.api.raw("PUT", "/connectors/gen/fence", b"", headers)
    assert (status, json.loads(body)["message"]) == (403, "Internal request contained invalid signature.")
