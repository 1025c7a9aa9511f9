"""Resources of v3: clusters, brokers, topics, configs, partitions, groups, lags, ACLs, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer

from moldau.testing import Cluster
from tests.harness.rest_proxy import Api, embedded, rest_proxy
from tests.harness.waiting import eventually
from tests.integration.rest.conftest import World


@pytest.fixture(scope="module")
def base(world: World) -> str:
    return f"http://127.0.0.1:{world.rest.port}/v3/clusters/{world.cluster_id}"


def test_clusters_and_brokers(world: World, rest: Api, base: str) -> None:
    listed = rest("GET", "/v3/clusters").body
    assert listed["kind"] == "KafkaClusterList"
    assert listed["metadata"] == {"self": base.rpartition("/")[0], "next": None}
    [cluster] = listed["data"]
    assert cluster == rest("GET", world.v3("")).body
    assert cluster == {
        "kind": "KafkaCluster",
        "metadata": {"self": base, "resource_name": f"crn:///kafka={world.cluster_id}"},
        "cluster_id": world.cluster_id,
        "controller": {"related": f"{base}/brokers/1"},
        "acls": {"related": f"{base}/acls"},
        "brokers": {"related": f"{base}/brokers"},
        "broker_configs": {"related": f"{base}/broker-configs"},
        "consumer_groups": {"related": f"{base}/consumer-groups"},
        "topics": {"related": f"{base}/topics"},
        "partition_reassignments": {"related": f"{base}/topics/-/partitions/-/reassignment"},
    }
    [broker] = rest("GET", world.v3("/brokers")).body["data"]
    assert broker == rest("GET", world.v3("/brokers/1")).body
    assert (broker["kind"], broker["broker_id"]) == ("KafkaBroker", 1)
    assert broker["metadata"]["resource_name"] == f"crn:///kafka={world.cluster_id}/broker=1"
    assert rest("GET", world.v3("/brokers/9")).error == (404, 404)
    assert rest("GET", "/v3/clusters/other").error == (404, 404)
    assert rest("GET", "/v3/clusters/other/topics").error == (404, 404)


def test_topics_are_created_changed_and_deleted(world: World, rest: Api, base: str) -> None:
    wanted = {
        "topic_name": "v3-topic",
        "partitions_count": 2,
        "replication_factor": 1,
        "configs": [{"name": "cleanup.policy", "value": "compact"}],
    }
    assert rest("POST", world.v3("/topics"), {**wanted, "validate_only": True}).status == 200
    assert rest("GET", world.v3("/topics/v3-topic")).error == (404, 40403)
    created = rest("POST", world.v3("/topics"), wanted)
    assert (created.status, created.headers["location"]) == (201, f"{base}/topics/v3-topic")
    assert created.body == {
        "kind": "KafkaTopic",
        "metadata": {
            "self": f"{base}/topics/v3-topic",
            "resource_name": f"crn:///kafka={world.cluster_id}/topic=v3-topic",
        },
        "cluster_id": world.cluster_id,
        "topic_name": "v3-topic",
        "is_internal": False,
        "replication_factor": 1,
        "partitions_count": 2,
        "partitions": {"related": f"{base}/topics/v3-topic/partitions"},
        "configs": {"related": f"{base}/topics/v3-topic/configs"},
        "partition_reassignments": {"related": f"{base}/topics/v3-topic/partitions/-/reassignment"},
        "authorized_operations": [],
    }
    becomes(rest, world.v3("/topics/v3-topic"), **created.body)
    assert created.body in rest("GET", world.v3("/topics")).body["data"]
    assert rest("POST", world.v3("/topics"), wanted).error == (400, 40002)
    assert rest("PATCH", world.v3("/topics/v3-topic"), {"partitions_count": 5}).status == 200
    becomes(rest, world.v3("/topics/v3-topic"), partitions_count=5)
    assert rest("PATCH", world.v3("/topics/v3-topic"), {"partitions_count": 1}).error == (400, 40002)
    assert rest("DELETE", world.v3("/topics/v3-topic")).status == 204
    eventually(lambda: rest("DELETE", world.v3("/topics/v3-topic")).error == (404, 40403), timeout=10)


def test_topic_with_chosen_replicas(world: World, rest: Api) -> None:
    wanted = {"topic_name": "v3-assigned", "replicas_assignments": {"0": [1], "1": [1], "2": [1]}}
    created = rest("POST", world.v3("/topics"), wanted).body
    assert (created["partitions_count"], created["replication_factor"]) == (3, 1)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"topic_name": "not valid!"}, (422, 42206)),
        (b"", (422, 42206)),
        ({}, (400, 400)),
        (b"{", (400, 400)),
        ([], (400, 400)),
        ({"topic_name": "t", "replication_factor": 7}, (400, 40002)),
        ({"topic_name": "t", "partitions_count": 0}, (400, 40002)),
        ({"topic_name": "t", "configs": [{"name": "nonsense", "value": "1"}]}, (400, 40002)),
        ({"topic_name": "t", "configs": 3}, (400, 400)),
    ],
)
def test_bad_topics_are_refused(world: World, rest: Api, body: Any, error: tuple[int, int]) -> None:
    assert rest("POST", world.v3("/topics"), body).error == error
    assert rest("POST", world.v3("/topics"), b"{}", "text/plain").error == (415, 415)


def becomes(rest: Api, path: str, **fields: Any) -> Any:
    """Return a resource when it has these values: a broker of Apache Kafka may read a change later."""

    def found() -> Any:
        answer = rest("GET", path)
        is_right = answer.status == 200 and all(answer.body[name] == each for name, each in fields.items())
        return answer.body if is_right else None

    return eventually(found, timeout=10, what=f"{path} has {fields}")


def disappears(rest: Api, path: str) -> None:
    eventually(lambda: rest("GET", path).error == (404, 404), timeout=10, what=f"{path} is gone")


def test_topic_configs(world: World, rest: Api, base: str) -> None:
    rest("POST", world.v3("/topics"), {"topic_name": "v3-configs"})
    becomes(rest, world.v3("/topics/v3-configs"))
    path = world.v3("/topics/v3-configs/configs")
    assert rest("PUT", f"{path}/retention.ms", {"value": "60000"}).status == 204
    config = becomes(rest, f"{path}/retention.ms", value="60000")
    assert (config["kind"], config["is_default"], config["source"]) == (
        "KafkaTopicConfig",
        False,
        "DYNAMIC_TOPIC_CONFIG",
    )
    assert config["metadata"]["self"] == f"{base}/topics/v3-configs/configs/retention.ms"
    assert config["synonyms"][0] == {
        "name": "retention.ms",
        "value": "60000",
        "source": "DYNAMIC_TOPIC_CONFIG",
    }
    assert config in rest("GET", path).body["data"]
    defaults = rest("GET", world.v3("/topics/v3-configs/default-configs")).body["data"]
    assert {each["name"]: each["value"] for each in defaults}["retention.ms"] == "604800000"
    changes = [
        {"name": "retention.ms", "operation": "DELETE"},
        {"name": "cleanup.policy", "value": "compact"},
    ]
    assert rest("POST", f"{path}:alter", {"data": changes}).status == 204
    becomes(rest, f"{path}/retention.ms", is_default=True)
    becomes(rest, f"{path}/cleanup.policy", value="compact")
    assert rest("DELETE", f"{path}/cleanup.policy").status == 204
    becomes(rest, f"{path}/cleanup.policy", value="delete")
    only = {"data": [{"name": "cleanup.policy", "value": "compact"}], "validate_only": True}
    assert rest("POST", f"{path}:alter", only).status == 204
    assert rest("GET", f"{path}/cleanup.policy").body["value"] == "delete"


def test_configs_that_are_refused(world: World, rest: Api) -> None:
    rest("POST", world.v3("/topics"), {"topic_name": "v3-refused"})
    becomes(rest, world.v3("/topics/v3-refused"))
    path = world.v3("/topics/v3-refused/configs")
    assert rest("GET", f"{path}/nonsense").error == (404, 404)
    assert rest("PUT", f"{path}/nonsense", {"value": "1"}).error == (404, 404)
    assert rest("PUT", f"{path}/retention.ms", {"value": "soon"}).error == (400, 40002)
    assert rest("GET", world.v3("/topics/v3-nothing/configs")).error == (404, 40403)


def test_configs_of_all_topics(world: World, rest: Api) -> None:
    for name in ("v3-all-a", "v3-all-b"):
        rest("POST", world.v3("/topics"), {"topic_name": name})
        becomes(rest, world.v3(f"/topics/{name}"))
    change = [{"name": "retention.ms", "value": "1000"}]
    both = [{"topic_name": name, "configs": change} for name in ("v3-all-a", "v3-all-b")]
    assert rest("POST", world.v3("/topics/-/configs:alter"), {"data": both}).status == 204
    for name in ("v3-all-a", "v3-all-b"):
        changed = becomes(rest, world.v3(f"/topics/{name}/configs/retention.ms"), value="1000")
        assert changed in rest("GET", world.v3("/topics/-/configs")).body["data"]
    path = world.v3("/topics/-/configs:alter")
    missing = {"topic_name": "v3-missing", "configs": change}
    assert rest("POST", path, {"data": [missing]}).error == (404, 40403)
    unknown = {"topic_name": "v3-all-a", "configs": [{"name": "retention.sm", "value": "1"}]}
    assert rest("POST", path, {"data": [unknown]}).error == (404, 404)
    refused = {"topic_name": "v3-all-b", "configs": [{"name": "retention.ms", "value": "soon"}]}
    answer = rest("POST", path, {"data": [both[0], refused]})
    assert answer.status == 207
    [failed] = answer.body["failures"]
    assert (failed["topic_name"], failed["error_code"]) == ("v3-all-b", 40002)


def test_broker_configs(world: World, rest: Api) -> None:
    path, name = world.v3("/brokers/1/configs"), "log.cleaner.threads"
    assert rest("PUT", f"{path}/{name}", {"value": "2"}).status == 204
    config = becomes(rest, f"{path}/{name}", value="2")
    assert (config["kind"], config["source"]) == ("KafkaBrokerConfig", "DYNAMIC_BROKER_CONFIG")
    assert rest("DELETE", f"{path}/{name}").status == 204
    becomes(rest, f"{path}/{name}", value="1", source="DEFAULT_CONFIG")
    assert len(rest("GET", path).body["data"]) > 100
    assert rest("GET", world.v3("/brokers/-/configs")).body["kind"] == "KafkaBrokerConfigList"
    assert rest("GET", world.v3("/brokers/9/configs")).error == (404, 404)
    assert rest("POST", f"{path}:alter", {"data": [{"name": name, "value": "2"}]}).status == 204
    becomes(rest, f"{path}/{name}", value="2")
    assert rest("POST", f"{path}:alter", {"data": [{"name": name, "operation": "DELETE"}]}).status == 204
    becomes(rest, f"{path}/{name}", value="1")


def test_cluster_configs(world: World, rest: Api) -> None:
    path, name = world.v3("/broker-configs"), "log.cleaner.threads"
    assert rest("PUT", f"{path}/{name}", {"value": "2"}).status == 204
    shown = becomes(rest, f"{path}/{name}", value="2")
    assert (shown["kind"], shown["config_type"]) == ("KafkaClusterConfig", "BROKER")
    assert shown in rest("GET", path).body["data"]
    assert rest("DELETE", f"{path}/{name}").status == 204
    disappears(rest, f"{path}/{name}")
    assert rest("POST", f"{path}:alter", {"data": [{"name": name, "value": "2"}]}).status == 204
    becomes(rest, f"{path}/{name}", value="2")
    assert rest("DELETE", f"{path}/{name}").status == 204
    disappears(rest, f"{path}/{name}")


def test_partitions_replicas_and_reassignments(world: World, rest: Api, base: str) -> None:
    rest("POST", world.v3("/topics"), {"topic_name": "v3-parts", "partitions_count": 2})
    becomes(rest, world.v3("/topics/v3-parts"))
    path, here = world.v3("/topics/v3-parts/partitions"), f"{base}/topics/v3-parts/partitions"
    assert [each["partition_id"] for each in rest("GET", path).body["data"]] == [0, 1]
    partition = rest("GET", f"{path}/1").body
    assert partition["leader"] == {"related": f"{here}/1/replicas/1"}
    assert partition["replicas"] == {"related": f"{here}/1/replicas"}
    assert partition["reassignment"] == {"related": f"{here}/1/reassignment"}
    [replica] = rest("GET", f"{path}/1/replicas").body["data"]
    assert replica == rest("GET", f"{path}/1/replicas/1").body
    assert (replica["is_leader"], replica["is_in_sync"], replica["broker_id"]) == (True, True, 1)
    assert replica in rest("GET", world.v3("/brokers/1/partition-replicas")).body["data"]
    rest("POST", "/topics/v3-parts/partitions/1", {"records": [{"value": 1}]}, embedded("json"))
    offsets = rest("GET", f"{path}/1/offset").body
    assert (offsets["earliest_offset"], offsets["latest_offset"]) == (0, 1)
    assert rest("GET", f"{path}/7").error == (404, 404)
    assert rest("GET", f"{path}/1/replicas/7").error == (404, 404)
    assert rest("GET", f"{path}/1/reassignment").error == (404, 404)
    assert rest("GET", world.v3("/topics/v3-nothing/partitions")).error == (404, 40403)
    for name in ("-", "v3-parts"):
        reassigned = rest("GET", world.v3(f"/topics/{name}/partitions/-/reassignment")).body
        assert (reassigned["kind"], reassigned["data"]) == ("KafkaReassignmentList", [])


@pytest.fixture
def member(world: World, rest: Api) -> Iterator[Consumer]:
    """A member of the group v3-group, which has read one of three records."""
    body = {"records": [{"value": each} for each in range(3)]}
    rest("POST", "/topics/v3-grouped", body, embedded("json"))
    consumer = Consumer(
        {
            "bootstrap.servers": world.bootstrap,
            "group.id": "v3-group",
            "client.id": "v3-client",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe(["v3-grouped"])
        message = consumer.poll(20)
        assert message is not None and message.offset() == 0
        consumer.commit(message, asynchronous=False)
        yield consumer
    finally:
        consumer.close()


def test_groups_consumers_and_lags(world: World, rest: Api, base: str, member: Consumer) -> None:
    path, here = world.v3("/consumer-groups/v3-group"), f"{base}/consumer-groups/v3-group"
    group = rest("GET", path).body
    assert group in rest("GET", world.v3("/consumer-groups")).body["data"]
    assert (group["state"], group["is_simple"], group["partition_assignor"]) == ("STABLE", False, "range")
    assert group["lag_summary"] == {"related": f"{here}/lag-summary"}
    [consumer] = rest("GET", f"{path}/consumers").body["data"]
    id = consumer["consumer_id"]
    assert (consumer["client_id"], id) == ("v3-client", member.memberid())
    assert rest("GET", f"{path}/consumers/{id}").body == consumer
    [assignment] = rest("GET", f"{path}/consumers/{id}/assignments").body["data"]
    assert assignment == rest("GET", f"{path}/consumers/{id}/assignments/v3-grouped/partitions/0").body
    assert assignment["lag"] == {"related": f"{here}/lags/v3-grouped/partitions/0"}
    [lag] = rest("GET", f"{path}/lags").body["data"]
    assert lag == rest("GET", f"{path}/lags/v3-grouped/partitions/0").body
    assert (lag["current_offset"], lag["log_end_offset"], lag["lag"]) == (1, 3, 2)
    summary = rest("GET", f"{path}/lag-summary").body
    assert (summary["max_lag"], summary["total_lag"], summary["max_lag_consumer_id"]) == (2, 2, id)
    assert rest("GET", world.v3("/consumer-groups/nothing")).error == (404, 404)
    assert rest("GET", f"{path}/consumers/nothing").error == (404, 404)
    assert rest("GET", f"{path}/lags/v3-grouped/partitions/5").error == (404, 404)


def test_acls() -> None:
    config: dict[str, str | int | bool] = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    acl = {
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "pattern_type": "LITERAL",
        "principal": "User:ann",
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
    }
    with Cluster(config=config) as cluster, rest_proxy(cluster.bootstrap_servers) as rest:
        id = rest("GET", "/v3/clusters").body["data"][0]["cluster_id"]
        path = f"/v3/clusters/{id}/acls"
        assert rest("POST", path, acl).status == 201
        more = [{**acl, "operation": each} for each in ("WRITE", "DESCRIBE")]
        assert rest("POST", f"{path}:batch", {"data": more}).status == 201
        eventually(lambda: len(rest("GET", path).body["data"]) == 3, timeout=10)
        [found] = rest("GET", f"{path}?operation=READ&principal=User:ann").body["data"]
        assert {name: found[name] for name in acl} == acl
        assert found["kind"] == "KafkaAcl"
        assert rest("POST", path, {**acl, "operation": "SING"}).error == (400, 400)
        assert rest("POST", path, {**acl, "resource_type": "ANY"}).error == (400, 400)
        assert rest("POST", path).error == (422, 42206)
        assert rest("DELETE", path).error == (400, 400)
        query = "resource_type=TOPIC&pattern_type=LITERAL&operation=ANY&permission=ANY"
        assert len(rest("DELETE", f"{path}?{query}").body["data"]) == 3
        assert rest("GET", path).body["data"] == []
        topics = f"/v3/clusters/{id}/topics"
        assert rest("POST", topics, {"topic_name": "allowed"}).body["authorized_operations"] == []
        shown = rest("GET", f"{topics}/allowed?include_authorized_operations=true").body
        assert {"READ", "WRITE", "DELETE", "ALTER_CONFIGS"} <= set(shown["authorized_operations"])
        assert rest("GET", f"{topics}?include_authorized_operations=true").body["data"] == [shown]


def test_acls_without_an_authorizer(world: World, rest: Api) -> None:
    assert rest("GET", world.v3("/acls")).error == (400, 40002)
