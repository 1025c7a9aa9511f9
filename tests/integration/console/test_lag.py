"""Lag on the console's port: Burrow's API, metrics and alerts agree with the pages, over real groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moldau.lag.evaluation.rules import Status
from moldau.lag.evaluation.verdicts import GroupLag, LagSnapshot, PartitionLag
from moldau.lag.monitor import LagMonitor
from moldau.metrics.end_offsets import Age
from tests.harness.lag import scenes
from tests.harness.lag.scene import LagScene
from tests.harness.lag.webhook import Receiver
from tests.harness.prometheus import figures
from tests.harness.rest_proxy import Api, service
from tests.harness.waiting import eventually

WINDOW = ("--lag-window", "2")


class PortMonitor(LagMonitor):
    """The verdicts about one group as a script sees them, each compared with the group's page."""

    def __init__(self, api: Api, group: str) -> None:
        self._api = api
        self._group = group

    @property
    def snapshot(self) -> LagSnapshot:  # type: ignore[override]
        path = f"/v3/kafka/default/consumer/{self._group}/lag"
        before = self._api("GET", path)
        page = self._api("GET", f"/groups/{self._group}")
        if before.status != 200 or page.status != 200 or before.body != self._api("GET", path).body:
            # The cluster was read again in between.
            return LagSnapshot()
        status = before.body["status"]
        shown = {(each["topic"], each["partition"]): each for each in page.body["offsets"]}
        partitions = tuple(
            _partition(each, shown[each["topic"], each["partition"]]) for each in status["partitions"]
        )
        worst = max((each.status for each in partitions), default=Status.OK)
        assert (page.body["status"], page.body["total_lag"]) == (worst.name, status["totallag"])
        assert Status[status["status"]] is min(worst, Status.ERR)
        group = GroupLag(
            self._group,
            "",
            "",
            0,
            worst,
            status["complete"],
            partitions,
            status["reason"],
        )
        return LagSnapshot(1, groups={self._group: group})

    @snapshot.setter
    def snapshot(self, value: LagSnapshot) -> None:
        raise AssertionError("read only")


def _partition(burrow: dict[str, Any], shown: dict[str, Any]) -> PartitionLag:
    for ours, theirs in (
        ("status", "status"),
        ("lag", "current_lag"),
        ("reason", "reason"),
        ("client_id", "client_id"),
    ):
        assert shown[ours] == burrow[theirs]
    seconds = burrow["lag_seconds"]
    return PartitionLag(
        burrow["topic"],
        burrow["partition"],
        Status[burrow["status"]],
        True,
        burrow["complete"],
        shown["committed_offset"],
        shown["log_end_offset"],
        None,
        burrow["current_lag"],
        None if seconds is None else Age(round(seconds * 1000), True),
        None,
        None,
        shown["member_id"],
        burrow["client_id"],
        burrow["owner"],
        burrow["reason"],
    )


@pytest.fixture(scope="module")
def served(bootstrap: str) -> Iterator[tuple[Api, Receiver]]:
    """A console with a short window, for two names of the same cluster, and its webhook."""
    with (
        Receiver() as receiver,
        service(
            "console",
            bootstrap,
            *WINDOW,
            "--alert-webhook",
            receiver.url,
            "--set",
            f"cluster.other.bootstrap.servers={bootstrap}",
        ) as (port, _),
    ):
        yield Api(port, {"Accept": "application/json"}), receiver


@pytest.mark.parametrize(
    "play", [scenes.stopped_and_recovered, scenes.stalled_and_resumed, scenes.slow, scenes.rewound]
)
def test_verdicts_have_burrows_words(
    served: tuple[Api, Receiver], bootstrap: str, play: Callable[[LagScene, LagMonitor], None]
) -> None:
    scene = LagScene(bootstrap)
    try:
        play(scene, PortMonitor(served[0], scene.group))
    finally:
        scene.close()


@pytest.fixture(scope="module")
def stopped(served: tuple[Api, Receiver], bootstrap: str) -> LagScene:
    scene = LagScene(bootstrap)
    scene.start()
    scene.drain()
    scene.close()
    scene.produce(10)
    path = f"/v3/kafka/default/consumer/{scene.group}/status"
    eventually(lambda: served[0]("GET", path).body["status"]["status"] == "ERR", timeout=30)
    return scene


def test_clusters_topics_and_consumers(served: tuple[Api, Receiver], stopped: LagScene) -> None:
    api = served[0]
    assert api("GET", "/v3/kafka").body["clusters"] == ["default", "other"]
    assert api("GET", "/v3/kafka/other").body["module"]["class-name"] == "kafka"
    assert stopped.topic in api("GET", "/v3/kafka/default/topic").body["topics"]
    assert api("GET", f"/v3/kafka/default/topic/{stopped.topic}").body["offsets"] == [stopped.produced]
    for cluster in ("default", "other"):
        assert stopped.group in api("GET", f"/v3/kafka/{cluster}/consumer").body["consumers"]
    assert api.raw("GET", "/burrow/admin/ready")[:2] == (200, b"READY")
    for path, message in (
        ("/v3/kafka/nope", "cluster module not found"),
        ("/v3/kafka/nope/consumer", "cluster not found"),
        ("/v3/kafka/default/nope", "invalid request type"),
    ):
        answer = api("GET", path)
        assert (answer.status, answer.body["message"]) == (404, message)
    assert api("GET", "/v3/kafka/default/consumer/nope/lag").body["status"]["status"] == "NOTFOUND"
    assert api.raw("DELETE", f"/v3/kafka/default/consumer/{stopped.group}")[0] == 405
    assert api.raw("GET", "/v3/kafka", headers={"Host": "evil.example"})[0] == 403


def test_metrics_of_each_cluster_and_an_alert(served: tuple[Api, Receiver], stopped: LagScene) -> None:
    api, receiver = served
    key = (stopped.group, "0", stopped.topic)
    for path in ("/metrics", "/clusters/default/metrics", "/clusters/other/metrics"):
        found = eventually(
            lambda path=path: _with_status(figures(f"http://127.0.0.1:{api.port}{path}"), *key), timeout=30
        )
        assert (found["moldau_lag_status", *key], found["kafka_consumergroup_lag", *key]) == (4, 10)
        assert found["moldau_lag_seconds", *key] > 1 and found["moldau_lag_up",] == 1
    assert api("GET", "/clusters/nope/metrics").status == 404
    alerts = eventually(lambda: [each for each in receiver.accepted if each["group"] == stopped.group])
    assert {(each["status"], each["previous_status"]) for each in alerts} == {("STOP", "OK")}
    assert {each["cluster"] for each in alerts} <= {"default", "other"}


def _with_status(found: dict[tuple[str, ...], float], *key: str) -> dict[tuple[str, ...], float] | None:
    return found if ("moldau_lag_status", *key) in found else None


def test_a_cluster_that_cannot_be_read_is_no_cluster_without_groups(bootstrap: str) -> None:
    with service("console", bootstrap, "--set", "cluster.gone.bootstrap.servers=127.0.0.1:1") as (port, _):
        api = Api(port, {"Accept": "application/json"})
        for path in ("consumer", "consumer/any/lag", "topic"):
            answer = api("GET", f"/v3/kafka/gone/{path}")
            assert (answer.status, answer.body["error"]) == (503, True)
            assert "127.0.0.1:1" in answer.body["message"]
        assert api.raw("GET", "/burrow/admin/ready")[0] == 503
        assert figures(f"http://127.0.0.1:{port}/clusters/gone/metrics")["moldau_lag_up",] == 0
