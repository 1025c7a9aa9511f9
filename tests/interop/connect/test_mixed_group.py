"""A group of Kafka Connect's worker and ours: they share the work; each continues what the other began."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.testing import Cluster
from tests.harness.apache.connect import ApacheWorker
from tests.harness.connect import Worker
from tests.harness.mirror import values_of
from tests.harness.waiting import eventually
from tests.integration.connect.conftest import group_properties
from tests.interop import jars

pytestmark = pytest.mark.interop


def owners(worker: ApacheWorker | Worker, names: list[str]) -> set[str]:
    """Return the workers of the running tasks."""
    found = set()
    for name in names:
        body = worker.api("GET", f"/connectors/{name}/status").body
        found |= {each["worker_id"] for each in body.get("tasks", []) if each["state"] == "RUNNING"}
    return found


@pytest.mark.parametrize("first_is_ours", [True, False])
def test_work_moves_between_the_workers(tmp_path: Path, first_is_ours: bool) -> None:
    try:
        libs = jars.connect_libs()
    except jars.Missing as missing:
        pytest.skip(str(missing))
    with Cluster() as cluster:
        bootstrap = cluster.bootstrap_servers
        settings = group_properties(bootstrap, "connect-cluster")
        theirs = {name: value for name, value in settings.items() if name != "tasks.host"}
        ours = Worker(tmp_path, settings, command="connect-distributed")
        apache = ApacheWorker(libs, tmp_path, theirs)
        workers: list[Worker | ApacheWorker] = [ours, apache] if first_is_ours else [apache, ours]
        try:
            for worker in workers:
                worker.start()
            names = [f"lines-{number}" for number in range(4)]
            for name in names:
                (tmp_path / f"{name}.txt").write_text("one\n")
                config = {"connector.class": "FileStreamSource", "file": f"{name}.txt", "topic": name}

                def create(name: str = name, config: dict[str, str] = config) -> bool:
                    return workers[1].api("PUT", f"/connectors/{name}/config", config).status in (200, 201)

                eventually(create, what=f"{name} is created")
            both = {ours.id, apache.id}
            eventually(lambda: owners(ours, names) == both and owners(apache, names) == both, what=ours.log)
            eventually(lambda: [values_of(bootstrap, each) for each in names] == [["one"]] * 4)
            # Both store offsets before the first worker dies.
            eventually(
                lambda: all(ours.api("GET", f"/connectors/{each}/offsets").body["offsets"] for each in names)
            )
            workers[0].kill()
            last = workers[1]
            eventually(lambda: owners(last, names) == {last.id}, what=last.log)
            for name in names:
                with (tmp_path / f"{name}.txt").open("a") as file:
                    file.write("two\n")
            eventually(lambda: [values_of(bootstrap, each) for each in names] == [["one", "two"]] * 4)
        finally:
            ours.kill()
            apache.kill()
