"""Partitions without a leader, on the source or the target, do not hold the others."""

from __future__ import annotations

from pathlib import Path

from moldau.client.admin.client import AdminClient, checked
from moldau.client.admin.topic_types import NewTopic
from moldau.testing import Cluster
from tests.harness.mirror import MirrorProcess, mm2_properties, produce, values_of
from tests.harness.waiting import eventually


def test_offline_partitions_do_not_hold_the_others(tmp_path: Path) -> None:
    placed = {0: [1], 1: [2]}
    settings = {
        "a->b.topics": "placed",
        "emit.checkpoints.enabled": "false",
        "b.producer.buffer.memory": str(4 << 20),
    }
    # One controller, so that a broker can be down.
    layout = {"brokers": 2, "controllers": 1}
    with (
        Cluster(**layout) as a,
        Cluster(**layout) as b,
        AdminClient(f"127.0.0.1:{a.node(1).port}") as admin_a,
        AdminClient(f"127.0.0.1:{b.node(1).port}") as admin_b,
    ):
        checked(admin_a.create_topics([NewTopic("placed", assignment=placed)]))
        internal = NewTopic(
            "mm2-offsets.a.internal", assignment={0: [1]}, configs={"cleanup.policy": "compact"}
        )
        checked(admin_b.create_topics([NewTopic("a.placed", assignment=placed), internal]))
        checked(admin_a.create_topics([NewTopic("mm2-offset-syncs.b.internal", assignment={0: [1]})]))
        source, target = a.bootstrap_servers, b.bootstrap_servers
        produce(source, "placed", ["before"], partition=1)
        a.kill(2)
        first = f"127.0.0.1:{b.node(1).port}"
        with MirrorProcess(tmp_path, mm2_properties(source, target, settings)) as mirror:
            produce(f"127.0.0.1:{a.node(1).port}", "placed", ["0"])
            eventually(lambda: values_of(first, "a.placed") == ["0"], what=mirror.log[-3000:])
            a.restart(2)
            eventually(lambda: values_of(target, "a.placed", 1) == ["before"], what=mirror.log[-3000:])
            b.kill(2)
            produce(source, "placed", ["y" * 1000] * 20_000, partition=1)
            produce(source, "placed", ["1"])
            eventually(lambda: values_of(first, "a.placed") == ["0", "1"], what=mirror.log[-3000:])
            b.restart(2)
            wanted = ["before", *["y" * 1000] * 20_000]
            eventually(lambda: values_of(target, "a.placed", 1) == wanted, what=mirror.log[-3000:])
