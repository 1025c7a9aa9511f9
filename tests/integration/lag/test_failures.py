"""A monitor continues when brokers die, and shows which groups it may not read."""

from __future__ import annotations

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from moldau.lag.evaluation.rules import Status
from moldau.testing import Cluster
from tests.harness.lag.scene import LagScene, observed
from tests.harness.nodes.authorized import ADMIN, authorized_nodes, java_login, librdkafka_login
from tests.harness.waiting import eventually

CONFIG = {"offsets.topic.replication.factor": 3, "offsets.topic.num.partitions": 3}


def leader_of(scene: LagScene, bootstrap: str) -> int:
    topics = AdminClient({"bootstrap.servers": bootstrap}).list_topics(scene.topic, timeout=30).topics
    leader: int = topics[scene.topic].partitions[0].leader
    return leader


def test_every_group_stays_known_when_a_broker_dies(cluster: Cluster) -> None:
    """The groups of the dead coordinator move to the other brokers."""
    bootstrap = cluster.bootstrap_servers
    scenes = [LagScene(bootstrap) for _ in range(3)]
    with observed(bootstrap) as monitor:
        for scene in scenes:
            scene.start()
            scene.until(monitor, Status.OK)
        # The topics have one replica each: those of the dead broker cannot be written.
        leaders = {scene.topic: leader_of(scene, bootstrap) for scene in scenes}
        victim = min((node.id for node in cluster.brokers), key=list(leaders.values()).count)
        cluster.kill(victim)
        alive = [scene for scene in scenes if leaders[scene.topic] != victim]
        before = monitor.snapshot.time_ms
        for scene in alive:
            scene.close()
            scene.produce(10)
            # The lag is read again after the coordinator has moved.
            scene.lag(monitor, lambda lag: (lag.total_lag or 0) >= 10 and lag.error is None)
        eventually(lambda: monitor.snapshot.error is None and monitor.snapshot.time_ms > before)
    for scene in scenes:
        scene.close()


def test_a_cluster_that_is_down_leaves_the_last_verdicts() -> None:
    with Cluster() as node, observed(node.bootstrap_servers) as monitor:
        known = monitor.snapshot
        node.kill()
        eventually(lambda: monitor.snapshot.error, what="the monitor reports the failure")
        assert monitor.snapshot.time_ms >= known.time_ms
        node.start()
        down = monitor.snapshot.time_ms
        eventually(lambda: monitor.snapshot.error is None and monitor.snapshot.time_ms > down)


def test_groups_and_topics_need_describe_permission() -> None:
    with Cluster(config=authorized_nodes(["monitor"])) as node:
        bootstrap = node.bootstrap_servers
        scenes = [LagScene(bootstrap, **librdkafka_login(ADMIN)) for _ in range(2)]
        for scene in scenes:
            scene.start()
            scene.close()
            scene.produce(3)
        readable, other = scenes
        admin = AdminClient({"bootstrap.servers": bootstrap, **librdkafka_login(ADMIN)})
        rights = [
            AclBinding(
                kind,
                name,
                ResourcePatternType.LITERAL,
                "User:monitor",
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for kind, name, operation in (
                (ResourceType.GROUP, readable.group, AclOperation.DESCRIBE),
                (ResourceType.TOPIC, readable.topic, AclOperation.DESCRIBE),
                # ListGroups then lists all groups, also those that the client may not describe.
                (ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE),
            )
        ]
        for done in admin.create_acls(rights).values():
            done.result(30)
        with observed({"bootstrap.servers": bootstrap, **java_login("monitor")}) as monitor:
            group = readable.lag(monitor, lambda lag: (lag.total_lag or 0) >= 3)
            assert group.error is None
            denied = other.lag(monitor, lambda lag: lag.error)
            assert denied.error and "not authorized" in denied.error
            assert denied.partitions == () and denied.status is Status.OK
            assert denied.total_lag is None
            assert monitor.snapshot.error is None
