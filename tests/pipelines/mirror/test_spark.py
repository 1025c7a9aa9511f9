"""Copy tasks as long-lived Spark tasks: shared partitions, new topics, stop, and kill -9."""

from __future__ import annotations

from pathlib import Path

from moldau.client.admin.client import AdminClient, checked
from moldau.client.admin.topic_types import NewTopic
from moldau.testing import Cluster
from tests.harness.mirror import MirrorProcess, mm2_properties, produce, values_of
from tests.harness.waiting import eventually


def test_tasks_on_spark_share_partitions_and_survive_kill_9(tmp_path: Path) -> None:
    with Cluster() as a, Cluster() as b, AdminClient(a.bootstrap_servers) as admin:
        source, target = a.bootstrap_servers, b.bootstrap_servers
        checked(admin.create_topics([NewTopic("first", 4)]))
        settings = {"tasks.max": "2", "exactly.once.source.support": "enabled"}
        mirror = MirrorProcess(tmp_path, mm2_properties(source, target, settings), "--master", "local[2]")

        def copied(topic: str, wanted: list[list[str]]) -> bool:
            return [values_of(target, f"a.{topic}", each) for each in range(len(wanted))] == wanted

        with mirror:
            for partition in range(4):
                produce(source, "first", [f"{partition}-{n}" for n in range(50)], partition=partition)
            wanted = [[f"{partition}-{n}" for n in range(50)] for partition in range(4)]
            eventually(lambda: copied("first", wanted), what=mirror.log[-3000:])
            mirror.kill()
            produce(source, "first", ["late"], partition=3)
            mirror.start()
            wanted[3].append("late")
            eventually(lambda: copied("first", wanted), what=mirror.log[-3000:])
            checked(admin.create_topics([NewTopic("second", 1)]))
            produce(source, "second", ["x"])
            eventually(lambda: copied("second", [["x"]]), what=mirror.log[-3000:])
            assert mirror.stop() == 0
