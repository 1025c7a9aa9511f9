"""Lag verdicts on groups of Apache Kafka: consumers of both protocols, share groups and the command."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from moldau.lag.evaluation.rules import Status
from moldau.lag.monitor import LagMonitor
from tests.harness.apache.node import ApacheCluster
from tests.harness.lag import scenes
from tests.harness.lag.scene import LagScene, observed
from tests.harness.tools import run_tool
from tests.interop.conftest import JavaTool

pytestmark = pytest.mark.interop

Scene = Callable[[LagScene, LagMonitor], None]
SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
CONFIGS = "kafka.admin.ConfigCommand"


@pytest.fixture(scope="module")
def monitor(apache: ApacheCluster) -> Iterator[LagMonitor]:
    with observed(apache.bootstrap_servers) as running:
        yield running


@pytest.fixture
def scene(apache: ApacheCluster, request: pytest.FixtureRequest) -> Iterator[LagScene]:
    prepared = LagScene(apache.bootstrap_servers, getattr(request, "param", "classic"))
    yield prepared
    prepared.close()


@pytest.mark.parametrize("scene", ["classic", "consumer"], indirect=True)
@pytest.mark.parametrize("play", [scenes.stopped_and_recovered, scenes.stalled_and_resumed])
def test_consumers_of_both_protocols(scene: LagScene, monitor: LagMonitor, play: Scene) -> None:
    play(scene, monitor)


@pytest.mark.parametrize("play", [scenes.slow, scenes.rewound])
def test_progress(scene: LagScene, monitor: LagMonitor, play: Scene) -> None:
    play(scene, monitor)


def test_a_share_group(scene: LagScene, monitor: LagMonitor, apache: ApacheCluster, tool: JavaTool) -> None:
    server = ("--bootstrap-server", apache.bootstrap_servers)
    entity = ("--alter", "--entity-type", "groups", "--entity-name", scene.group)
    tool(CONFIGS, *server, *entity, "--add-config", "share.auto.offset.reset=earliest")
    scene.produce(5)
    reading = ("--topic", scene.topic, "--group", scene.group, "--max-messages", "5")
    out, code = tool(SHARE_CONSUMER, *server, *reading)
    assert (out.split(), code) == (["record"] * 5, 0)
    group = scene.lag(monitor, lambda lag: lag.partitions and lag.partitions[0].end_offset == 5)
    assert group.type == "share"
    scene.produce(7)
    stopped = scene.until(monitor, Status.STOP, steps=False)
    assert stopped.lag == 7


def test_the_command_shows_the_lag_that_kafkas_tool_shows(
    scene: LagScene, apache: ApacheCluster, tool: JavaTool
) -> None:
    scene.start()
    scene.close()
    scene.produce(11)
    server = ("--bootstrap-server", apache.bootstrap_servers)
    done = run_tool("lag", *server, "--once", "--json", "--group", scene.group)
    (group,) = json.loads(done.out)["groups"]
    (partition,) = group["partitions"]
    out, _ = tool(
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        *server,
        "--describe",
        "--group",
        scene.group,
    )
    row = next(line.split() for line in out.splitlines() if line.startswith(scene.group))
    assert row[1:6] == [
        scene.topic,
        "0",
        str(partition["committed_offset"]),
        str(partition["log_end_offset"]),
        str(partition["lag"]),
    ]
