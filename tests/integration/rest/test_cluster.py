"""A cluster of three brokers: replicas and reassignments, and the death of a leader during streams."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AdminClient
from moldau.testing import Cluster
from tests.harness.rest_proxy import Api, rest_proxy
from tests.harness.waiting import eventually
from tests.integration.rest.test_v3_produce import open_request, results


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as cluster:
        cluster.wait_for_brokers()
        yield cluster


@pytest.fixture(scope="module")
def rest(cluster: Cluster) -> Iterator[Api]:
    with rest_proxy(cluster.bootstrap_servers) as rest:
        yield rest


@pytest.fixture(scope="module")
def base(rest: Api) -> str:
    id = rest("GET", "/v3/clusters").body["data"][0]["cluster_id"]
    return f"/v3/clusters/{id}"


def test_replicas_and_a_reassignment(cluster: Cluster, rest: Api, base: str) -> None:
    ids = [each["broker_id"] for each in rest("GET", f"{base}/brokers").body["data"]]
    assert len(ids) == 3
    wanted = {"topic_name": "placed", "replicas_assignments": {"0": ids[:2]}}
    assert rest("POST", f"{base}/topics", wanted).body["replication_factor"] == 2
    path = f"{base}/topics/placed/partitions/0"
    eventually(lambda: len(rest("GET", f"{path}/replicas").body.get("data", [])) == 2, timeout=20)
    assert rest("GET", f"{path}/replicas/{ids[0]}").body["is_leader"] is True
    assert rest("GET", f"{path}/replicas/{ids[2]}").error == (404, 404)
    # A replica on a broker that is down cannot catch up, so the reassignment stays visible.
    last = next(node for node in cluster.brokers if node.id == ids[2])
    last.pause()
    try:
        with AdminClient(cluster.bootstrap_servers) as admin:
            where = TopicPartition("placed", 0)
            admin.alter_partition_reassignments({where: [ids[0], ids[2]]})
            shown = eventually(
                lambda: (answer := rest("GET", f"{path}/reassignment")).status == 200 and answer.body,
                timeout=20,
            )
            assert (shown["adding_replicas"], shown["removing_replicas"]) == ([ids[2]], [ids[1]])
            for name in ("placed", "-"):
                listed = rest("GET", f"{base}/topics/{name}/partitions/-/reassignment").body["data"]
                assert shown in listed
            admin.alter_partition_reassignments({where: None})
    finally:
        last.resume()


def test_no_record_is_lost_when_a_leader_dies(cluster: Cluster, rest: Api, base: str) -> None:
    config = [{"name": "min.insync.replicas", "value": "2"}]
    rest("POST", f"{base}/topics", {"topic_name": "safe", "replication_factor": 3, "configs": config})
    eventually(lambda: rest("GET", f"{base}/topics/safe").status == 200, timeout=20)
    eventually(lambda: len(rest("GET", f"{base}/topics/safe/partitions/0/replicas").body["data"]) == 3)
    connection, response = rest.open("GET", f"{base}/topics/safe/records?follow=true")
    try:
        with open_request(rest, f"{base}/topics/safe/records") as request:
            for number in range(60):
                if number == 20:
                    leader = rest("GET", f"{base}/topics/safe/partitions/0").body["leader"]["related"]
                    broker = int(leader.rpartition("/")[2])
                    next(node for node in cluster.brokers if node.id == broker).kill()
                request.send(json.dumps({"value": {"type": "JSON", "data": number}}).encode())
                if number == 0:
                    assert request.head() == 200
                [result] = results(request.chunk())
                assert result["error_code"] == 200, result
            request.end()
        read = [json.loads(response.readline())["value"]["data"] for _ in range(60)]
        assert read == list(range(60))
    finally:
        response.close()
        connection.close()
