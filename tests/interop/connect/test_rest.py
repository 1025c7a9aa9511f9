"""The REST API: Kafka Connect's worker and ours get the same requests and have to give the same answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.testing import Cluster
from tests.harness.apache.connect import ApacheWorker
from tests.harness.apache.node import ApacheCluster
from tests.harness.connect import Worker
from tests.harness.waiting import eventually
from tests.integration.connect.conftest import group_properties
from tests.interop import jars
from tests.interop.connect.rest_scenes import JSON, Step, steps

pytestmark = pytest.mark.interop

#: Differ by nature; texts of documentation are our own words.
_VOLATILE = {"worker_id", "version", "documentation", "last_modified", "commit", "kafka_cluster_id"}
_VERSIONS = re.compile(r"plugin\.version$")


@pytest.fixture(params=["moldau", "apache"])
def workers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[ApacheWorker, Worker]]:
    """Kafka Connect's worker on our brokers, and ours on our brokers and on Kafka's."""
    try:
        libs = jars.connect_libs()
    except jars.Missing as missing:
        pytest.skip(str(missing))
    brokers = Cluster() if request.param == "moldau" else ApacheCluster(libs=jars.kafka_libs())
    with Cluster() as first, brokers as second:
        theirs, ours = (
            group_properties(each.bootstrap_servers, "connect-cluster") for each in (first, second)
        )
        del theirs["tasks.host"]
        folders = tmp_path / "apache", tmp_path / "moldau"
        for folder in folders:
            folder.mkdir()
            (folder / "in.txt").write_text("one\ntwo\n")
        with (
            ApacheWorker(libs, folders[0], theirs) as apache,
            Worker(folders[1], ours, command="connect-distributed") as moldau,
        ):
            eventually(lambda: moldau.api("GET", "/health").status == 200, what=moldau.log)
            yield apache, moldau
            moldau.kill()


def test_answers_are_those_of_kafka_connect(workers: tuple[ApacheWorker, Worker]) -> None:
    different = []
    for step in steps():
        if step.states is not None:
            for worker in workers:
                _wait(worker, step)
            continue
        wanted, found = (_ask(worker, step) for worker in workers)
        if step.difference:
            assert (found[0] >= 400) == (wanted[0] >= 400), f"{step}: {found}, Kafka {wanted}"
        elif wanted != found:
            different.append(_describe(step, wanted, found))
    assert not different, "\n".join(different)


def test_ours_has_all_plugins_of_kafka(workers: tuple[ApacheWorker, Worker]) -> None:
    theirs, ours = (
        {
            (each["class"], each["type"])
            for each in worker.api("GET", "/connector-plugins?connectorsOnly=false").body
        }
        for worker in workers
    )
    assert theirs - ours == set()


def _wait(worker: ApacheWorker | Worker, step: Step) -> None:
    assert step.states is not None
    name, connector, tasks = step.states

    def reached() -> bool:
        status, body = _request(worker, Step("GET", f"/connectors/{name}/status"))
        if status != 200:
            return connector == str(status)
        states = [each["state"] for each in body["tasks"]]
        return body["connector"]["state"] == connector and states == list(tasks)

    eventually(reached, what=f"{step.states} on {type(worker).__name__}")


def _ask(worker: ApacheWorker | Worker, step: Step) -> tuple[int, Any]:
    """Return the status and the comparable body; 409 of a rebalance is asked again."""

    def settled() -> tuple[int, Any] | None:
        status, body = _request(worker, step)
        rebalances = status == 409 and "already exists" not in str(body)
        return None if rebalances else (status, _comparable(body))

    answer = eventually(settled, what=str(step))
    assert answer is not None
    return answer


def _request(worker: ApacheWorker | Worker, step: Step) -> tuple[int, Any]:
    data = step.body if step.body is None or isinstance(step.body, bytes) else json.dumps(step.body).encode()
    headers = {} if data is None else {"Content-Type": step.kind}
    status, text, _ = worker.api.raw(step.method, step.path, data, {"Accept": JSON, **headers})
    try:
        return status, json.loads(text) if text else None
    except ValueError:
        return status, text.decode("utf-8", "replace")


def _comparable(value: Any) -> Any:
    """Return a value without what differs by nature; lists of settings and plugins become sets by name."""
    if isinstance(value, dict):
        if isinstance(value.get("recommended_values"), list):
            # Kafka's distribution does not contain Confluent's converters; ours does.
            kept = [each for each in value["recommended_values"] if not str(each).startswith("io.confluent.")]
            value = {**value, "recommended_values": kept}
        if "definition" in value and _VERSIONS.search(str(value.get("value", {}).get("name"))):
            return value["value"]["name"]
        result = {
            name: "*" if name in _VOLATILE and each else _comparable(each) for name, each in value.items()
        }
        if "plugin.version" in str(value.get("name", "")):
            result.pop("default_value", None)
        if isinstance(result.get("groups"), list):
            result["groups"].sort()
        if isinstance(result.get("trace"), str):
            result["trace"] = result["trace"].partition("\n")[0]
        return result
    if isinstance(value, list):
        if value and all(isinstance(each, dict) and "definition" in each for each in value):
            return {str(each["value"]["name"]): _comparable(each) for each in value}
        return [_comparable(each) for each in value]
    # Python and Java word the errors of regular expressions differently.
    return value.partition("Invalid regex: ")[0] if isinstance(value, str) else value


def _describe(step: Step, wanted: tuple[int, Any], found: tuple[int, Any]) -> str:
    body = step.body.decode() if isinstance(step.body, bytes) else json.dumps(step.body)
    lines = [f"{step.method} {step.path} {body[:200]}"]
    pair = ({"status": status, "body": value} for status, value in (wanted, found))
    return "\n  ".join([*lines, *_differences("", *pair)])


def _differences(path: str, wanted: Any, found: Any) -> list[str]:
    if isinstance(wanted, dict) and isinstance(found, dict):
        names = [*wanted, *(each for each in found if each not in wanted)]
        return [
            line
            for name in names
            if wanted.get(name, ...) != found.get(name, ...)
            for line in _differences(
                f"{path}/{name}", wanted.get(name, "missing"), found.get(name, "missing")
            )
        ]
    return [f"{path}: Kafka {json.dumps(wanted)[:500]}", f"{path}: ours  {json.dumps(found)[:500]}"]
