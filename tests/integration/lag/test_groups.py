"""Lag verdicts over real groups of librdkafka's consumers, of both protocols, and over a share group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AdminClient, checked
from moldau.lag.evaluation.rules import Status
from moldau.lag.filters import NameFilter
from moldau.lag.monitor import LagMonitor
from moldau.pipelines.sink.markers import Marker
from tests.harness.connect import STRINGS, Worker, standalone_properties
from tests.harness.lag import scenes
from tests.harness.lag.scene import LagScene, observed
from tests.harness.tools import Tools
from tests.harness.waiting import eventually

Scene = Callable[[LagScene, LagMonitor], None]


@pytest.fixture(scope="module")
def monitor(bootstrap: str) -> Iterator[LagMonitor]:
    with observed(bootstrap) as running:
        yield running


@pytest.fixture
def scene(bootstrap: str, request: pytest.FixtureRequest) -> Iterator[LagScene]:
    prepared = LagScene(bootstrap, getattr(request, "param", "classic"))
    yield prepared
    prepared.close()


@pytest.mark.parametrize("scene", ["classic", "consumer"], indirect=True)
@pytest.mark.parametrize("play", [scenes.stopped_and_recovered, scenes.stalled_and_resumed])
def test_consumers_of_both_protocols(scene: LagScene, monitor: LagMonitor, play: Scene) -> None:
    play(scene, monitor)


@pytest.mark.parametrize("play", [scenes.slow, scenes.rewound])
def test_progress(scene: LagScene, monitor: LagMonitor, play: Scene) -> None:
    play(scene, monitor)


def test_lag_is_the_difference_of_the_offsets(scene: LagScene, monitor: LagMonitor) -> None:
    scene.start()
    scene.close()
    scene.produce(25)
    read = sum(scene.consumed.values())
    group = scene.lag(monitor, lambda lag: (lag.total_lag or 0) >= 25)
    (partition,) = group.partitions
    assert partition.committed == read
    assert group.total_lag == partition.lag == (partition.end_offset or 0) - read


def test_a_deleted_topic_leaves_no_lag(scene: LagScene, monitor: LagMonitor) -> None:
    scene.start()
    scene.close()
    scene.produce(10)
    scene.lag(monitor, lambda lag: lag.total_lag)
    scene.delete_topic()
    eventually(
        lambda: not (lag := monitor.snapshot.groups.get(scene.group)) or not lag.partitions,
        what="the partitions disappear",
    )
    assert scene.topic not in monitor.snapshot.topics


def test_a_share_group_has_the_lag_that_the_broker_counts(
    scene: LagScene, monitor: LagMonitor, tools: Tools
) -> None:
    earliest = ("--add-config", "share.auto.offset.reset=earliest")
    tools.good("kafka-configs", "--alter", "--entity-type", "groups", "--entity-name", scene.group, *earliest)
    scene.produce(5)
    reading = ("--topic", scene.topic, "--group", scene.group, "--max-messages", "5", "--timeout-ms", "20000")
    assert len(tools.good("kafka-console-share-consumer", *reading)) == 5
    group = scene.lag(monitor, lambda lag: lag.partitions and lag.partitions[0].end_offset == 5)
    assert group.type == "share" and group.total_lag == 0
    scene.produce(7)
    stopped = scene.until(monitor, Status.STOP, steps=False)
    assert stopped.lag == 7
    assert stopped.reason and "the group has no members" in stopped.reason


def test_a_pipeline_is_a_group_without_members_and_its_markers_are_none(
    scene: LagScene, monitor: LagMonitor, bootstrap: str
) -> None:
    scene.produce(10)
    place, markers = TopicPartition(scene.topic, 0), f"moldau-{scene.group}-0"
    with AdminClient(bootstrap) as admin:
        checked(admin.alter_group_offsets(markers, {place: Marker(7, "run", "write").stored(2)}))
        checked(admin.alter_group_offsets(scene.group, {place: 4}))
    group = scene.lag(monitor, lambda lag: lag.total_lag == 6)
    assert (group.members, group.state) == (0, "Empty")
    assert scene.until(monitor, Status.STOP, steps=False).lag == 6
    assert markers not in monitor.snapshot.groups


def test_a_quota_of_the_client_is_a_reason(scene: LagScene, bootstrap: str, tools: Tools) -> None:
    scene.client_id = f"limited-{scene.group}"
    entity = ("--entity-type", "clients", "--entity-name", scene.client_id)
    tools.good("kafka-configs", "--alter", *entity, "--add-config", "consumer_byte_rate=1000000")
    with observed(bootstrap, groups=NameFilter([scene.group])) as monitor:
        scene.start()
        scene.producing, scene.consuming = 20, 1
        warned = scene.until(monitor, Status.WARN)
    assert warned.reason and "has a quota of 1,000,000 bytes per second" in warned.reason


def test_quotas_of_users_and_of_all_clients_are_read(scene: LagScene, bootstrap: str, tools: Tools) -> None:
    rate, alter = ("--add-config", "consumer_byte_rate=2000000"), ("kafka-configs", "--alter")
    user = ("--entity-type", "users", "--entity-name", f"alice-{scene.group}")
    pair = ("--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-name")
    scene.client_id = f"limited-{scene.group}"
    tools.good(*alter, *user, *rate)
    tools.good(*alter, *pair, scene.client_id, *rate)
    with observed(bootstrap, groups=NameFilter([scene.group])) as monitor:
        scene.start()
        scene.producing, scene.consuming = 20, 1
        warned = scene.until(monitor, Status.WARN)
        assert warned.reason and "has a quota of 2,000,000 bytes per second" in warned.reason
    tools.good("kafka-configs", "--alter", *pair, scene.client_id, "--delete-config", "consumer_byte_rate")
    with observed(bootstrap, groups=NameFilter([scene.group])) as monitor:
        warned = scene.until(monitor, Status.WARN)
        assert warned.reason and f"may be throttled: alice-{scene.group} (2,000,000" in warned.reason


def test_a_sink_connector_is_a_group(bootstrap: str, monitor: LagMonitor, tmp_path: Path) -> None:
    """Its worker owns the partitions while it runs; the group of the workers itself has no lag."""
    scene = LagScene(bootstrap)
    name = f"sink-{scene.topic}"
    scene.group = f"connect-{name}"
    scene.produce(20)
    sink = {
        "name": name,
        "connector.class": "FileStreamSink",
        "file": str(tmp_path / "out.txt"),
        "topics": scene.topic,
        "consumer.override.auto.offset.reset": "earliest",
    }
    properties = {**standalone_properties(bootstrap, tmp_path), **STRINGS, "offset.flush.interval.ms": "300"}
    properties["connector.client.config.override.policy"] = "All"
    with Worker(tmp_path, properties, [sink]):
        read = scene.lag(monitor, lambda lag: bool(lag.partitions) and lag.partitions[0].committed == 20)
        assert (read.type, read.members, read.total_lag) == ("classic", 1, 0)
        assert read.partitions[0].client_id
        scene.until(monitor, Status.OK, steps=False)
    scene.produce(5)
    stopped = scene.until(monitor, Status.STOP, steps=False)
    assert stopped.lag == 5
    assert stopped.reason and "the group has no members" in stopped.reason


def test_filters_select_groups_and_topics(scene: LagScene, bootstrap: str) -> None:
    scene.start()
    chosen = NameFilter([scene.group])
    with (
        observed(bootstrap, groups=chosen) as only,
        observed(bootstrap, groups=chosen, topics=NameFilter(exclude=["lag-.*"])) as none,
    ):
        assert list(only.snapshot.groups) == [scene.group]
        assert [each.topic for each in only.snapshot.groups[scene.group].partitions] == [scene.topic]
        assert none.snapshot.groups == {}
