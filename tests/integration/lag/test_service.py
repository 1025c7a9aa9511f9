"""`moldau lag --serve`: Burrow's API, Prometheus metrics and alerts, over real sockets."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AdminClient, checked
from moldau.testing import Cluster
from tests.harness.lag.scene import LagScene
from tests.harness.lag.service import lag_service
from tests.harness.lag.webhook import Receiver
from tests.harness.prometheus import figures
from tests.harness.rest_proxy import Api
from tests.harness.waiting import eventually

SHORT = ("--window", "1.5", "--interval", "0.2")
COMMIT_MEMBERS = {"offset", "timestamp", "observedAt", "lag"}


class Served(NamedTuple):
    api: Api
    scene: LagScene
    receiver: Receiver

    def get(self, path: str) -> Any:
        answer = self.api("GET", f"/v3/kafka{path}")
        assert answer.status == 200 and answer.body["error"] is False
        assert answer.body["request"]["url"] == f"/v3/kafka{path}" and answer.body["request"]["host"]
        return answer.body


@pytest.fixture(scope="module")
def served(bootstrap: str) -> Iterator[Served]:
    """A service that observes a group that has stopped; its webhook fails twice."""
    scene = LagScene(bootstrap, partitions=2)
    scene.start()
    scene.drain()
    scene.close()
    scene.produce(10)
    short = (*SHORT, "--group", scene.group, "--cluster", "test")
    with (
        Receiver([503, 500]) as receiver,
        lag_service(bootstrap, *short, "--alert-webhook", receiver.url) as port,
    ):
        api = Api(port)
        status = f"/v3/kafka/test/consumer/{scene.group}/status"
        eventually(lambda: api("GET", status).body["status"]["status"] == "ERR", what="the group is stopped")
        yield Served(api, scene, receiver)


def test_health(served: Served) -> None:
    assert served.api.raw("GET", "/burrow/admin")[:2] == (200, b"GOOD")
    assert served.api.raw("GET", "/burrow/admin/ready")[:2] == (200, b"READY")


def test_clusters_and_topics(served: Served) -> None:
    scene = served.scene
    assert served.get("")["clusters"] == ["test"]
    module = served.get("/test")["module"]
    assert module["class-name"] == "kafka" and module["servers"]
    assert set(module) == {"class-name", "servers", "client-profile", "topic-refresh", "offset-refresh"}
    assert served.get("/test/topic")["topics"] == [scene.topic]
    offsets = served.get(f"/test/topic/{scene.topic}")["offsets"]
    assert len(offsets) == 2 and all(each >= 10 for each in offsets)
    assert served.get(f"/test/topic/{scene.topic}/consumers")["consumers"] == [scene.group]


def test_partitions_that_no_group_reads_are_listed_too(served: Served, bootstrap: str) -> None:
    scene = LagScene(bootstrap, partitions=3)
    scene.produce(4)
    with AdminClient(bootstrap) as admin:
        checked(admin.alter_group_offsets(scene.group, {TopicPartition(scene.topic, 1): 2}))
    with lag_service(bootstrap, "--group", scene.group, "--cluster", "test") as port:
        answer = Api(port)("GET", f"/v3/kafka/test/topic/{scene.topic}")
        assert answer.body["offsets"] == [4, 4, 4]


def test_consumers(served: Served) -> None:
    scene = served.scene
    assert served.get("/test/consumer")["consumers"] == [scene.group]
    topics = served.get(f"/test/consumer/{scene.group}")["topics"]
    assert list(topics) == [scene.topic] and len(topics[scene.topic]) == 2
    for partition in topics[scene.topic]:
        assert set(partition) == {"offsets", "owner", "client_id", "current-lag"}
        assert partition["current-lag"] == 10
        # As many as the window has intervals; the missing ones are null and first.
        assert len(partition["offsets"]) == 9 and partition["offsets"][0] is None
        assert set(partition["offsets"][-1]) == COMMIT_MEMBERS


@pytest.mark.parametrize(("path", "partitions"), [("status", 2), ("lag", 2)])
def test_status(served: Served, path: str, partitions: int) -> None:
    scene = served.scene
    status = served.get(f"/test/consumer/{scene.group}/{path}")["status"]
    assert (status["cluster"], status["group"], status["status"]) == ("test", scene.group, "ERR")
    assert (status["partition_count"], status["totallag"], status["complete"]) == (2, 20, 1.0)
    assert len(status["partitions"]) == partitions
    for each in (*status["partitions"], status["maxlag"]):
        assert each["topic"] == scene.topic and each["status"] == "STOP" and each["current_lag"] == 10
        assert each["complete"] == 1.0 and each["owner"] == each["client_id"] == ""
        assert set(each["start"]) == set(each["end"]) == COMMIT_MEMBERS
        assert each["end"]["lag"] == 10
        assert each["lag_seconds"] > 1 and "no members" in each["reason"]


def test_what_does_not_exist_is_404_as_in_burrow(served: Served) -> None:
    api = served.api
    missing = api("GET", "/v3/kafka/test/consumer/nobody/lag")
    assert missing.status == 404 and missing.body["error"] is False
    assert missing.body["status"]["status"] == "NOTFOUND" and missing.body["status"]["partitions"] == []
    for path, message in (
        ("/v3/kafka/other", "cluster module not found"),
        ("/v3/kafka/other/consumer", "cluster not found"),
        ("/v3/kafka/other/topic", "cluster not found"),
        ("/v3/kafka/test/topic/nothing", "cluster or topic not found"),
        ("/v3/kafka/test/consumer/nobody", "cluster or consumer not found"),
        ("/v3/kafka/test/unknown", "invalid request type"),
        ("/v2/kafka", "invalid request type"),
        ("/", "invalid request type"),
    ):
        answer = api("GET", path)
        assert (answer.status, answer.body["error"], answer.body["message"]) == (404, True, message)
    assert api.raw("DELETE", f"/v3/kafka/test/consumer/{served.scene.group}")[0] == 405


def test_metrics_of_three_dialects(served: Served) -> None:
    scene = served.scene
    found = figures(f"http://127.0.0.1:{served.api.port}/metrics")
    for partition in ("0", "1"):
        key = (scene.group, partition, scene.topic)
        assert found["kafka_consumergroup_lag", *key] == 10
        assert found["moldau_lag_status", *key] == 4
        assert found["moldau_lag_seconds", *key] > 1
        assert found["burrow_kafka_consumer_partition_lag", "test", *key] == 10
        assert found["burrow_kafka_topic_partition_status", "test", *key] == 4
        end = found["kafka_topic_partition_current_offset", partition, scene.topic]
        assert end - found["kafka_consumergroup_current_offset", *key] == 10
    assert found["kafka_consumergroup_lag_sum", scene.group, scene.topic] == 20
    assert found["kafka_consumergroup_members", scene.group] == 0
    assert found["moldau_lag_group_status", scene.group] == 4
    assert found["burrow_kafka_consumer_status", "test", scene.group] == 3
    assert found["burrow_kafka_consumer_lag_total", "test", scene.group] == 20
    assert found["moldau_lag_up",] == 1


def test_an_alert_is_repeated_until_the_webhook_accepts_it(served: Served) -> None:
    eventually(lambda: served.receiver.accepted, timeout=20, what="the alert is accepted")
    alert = served.receiver.accepted[0]
    assert served.receiver.refused == [alert, alert]
    assert (alert["cluster"], alert["group"], alert["status"]) == ("test", served.scene.group, "STOP")
    eventually(
        lambda: figures(f"http://127.0.0.1:{served.api.port}/metrics")["moldau_lag_alerts_sent_total",] >= 1
    )


def test_logs_are_lines_of_json(tmp_path: Path) -> None:
    with Cluster() as cluster, (tmp_path / "log").open("w+") as log:
        with lag_service(cluster.bootstrap_servers, "--verbose", "--log-format", "json", *SHORT, log=log):
            cluster.kill(1)

            def lines() -> list[dict[str, Any]]:
                text = (tmp_path / "log").read_text()
                return [json.loads(each) for each in text.splitlines(keepends=True) if each.endswith("\n")]

            found = eventually(lambda: [each for each in lines() if each["event"] == "lag.not_read"])
        assert found[0]["logger"] == "moldau.lag.monitor"


def test_the_http_server_may_require_a_login(bootstrap: str, tmp_path: Path) -> None:
    users = tmp_path / "users.properties"
    users.write_text("ann: secret,reader\n")
    login = (
        "authentication.method=BASIC",
        "authentication.roles=reader",
        f"authentication.users.file={users}",
    )
    chosen = [word for each in login for word in ("--set", each)]
    with lag_service(bootstrap, "--group", "none", *chosen) as port:
        assert Api(port).raw("GET", "/metrics")[0] == 401
        token = base64.b64encode(b"ann:secret").decode()
        assert Api(port, {"Authorization": f"Basic {token}"}).raw("GET", "/metrics")[0] == 200
