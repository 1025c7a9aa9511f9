"""Topics that tasks create: only missing ones, and only if the worker allows it."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.worker.task.dead_letters import create_topic
from moldau.pipelines.connect.worker.task.topics import TopicCreation, topic_groups
from tests.harness.mirror import values_of
from tests.harness.waiting import eventually
from tests.integration.conftest import StartNode
from tests.integration.connect.conftest import StartWorker

DEFAULT = {"topic.creation.default.partitions": "3", "topic.creation.default.replication.factor": "1"}


def test_a_topic_that_exists_needs_no_permission_to_create(start_node: StartNode) -> None:
    node = start_node(
        config={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
        }
    )
    admin = AdminClient({"bootstrap.servers": node.bootstrap_servers})
    for future in admin.create_topics([NewTopic("lines", 1, 1)]).values():
        future.result(20)
    rules = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", operation, permission)
        for kind, name, operation, permission in (
            (ResourceType.TOPIC, "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW),
            (ResourceType.BROKER, "kafka-cluster", AclOperation.CREATE, AclPermissionType.DENY),
        )
    ]
    for future in admin.create_acls(rules).values():
        future.result(20)
    client = {"bootstrap.servers": node.bootstrap_servers}
    create_topic(client, "lines", 1)
    creation = TopicCreation(topic_groups(DEFAULT), client)
    creation.ensure("lines")
    with pytest.raises(ConnectError, match="failed to create new topic missing"):
        creation.ensure("missing")


@pytest.mark.parametrize(("enabled", "partitions"), [("true", 3), ("false", 1)])
def test_the_worker_allows_the_creation_of_topics(
    enabled: str, partitions: int, bootstrap: str, group: str, start_worker: StartWorker
) -> None:
    worker = start_worker(topic_creation_enable=enabled)
    topic = f"{group}-users"
    worker.create(
        "gen", {"connector.class": "Datagen", "kafka.topic": topic, "quickstart": "users", **DEFAULT}
    )
    eventually(lambda: values_of(bootstrap, topic), what=worker.log)
    found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, timeout=10).topics[topic]
    assert len(found.partitions) == partitions
