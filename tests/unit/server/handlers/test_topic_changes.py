"""CreateTopics, DeleteTopics, CreatePartitions and AlterConfigs: what is decided, refused and hidden."""

from __future__ import annotations

from typing import Any, cast

import pytest

from moldau.base.errors import ErrorCode
from moldau.base.ids import METADATA_TOPIC
from moldau.metadata.image import MetadataImage, ResourceType
from moldau.protocol.messages.alter_configs import AlterConfigsResource
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from moldau.security.acl.permissions import (
    ALTER_CLUSTER_CONFIGS,
    ALTER_TOPIC,
    ALTER_TOPIC_CONFIGS,
    CREATE_CLUSTER,
    CREATE_TOPIC,
    DELETE_TOPIC,
    DESCRIBE_TOPIC,
    DESCRIBE_TOPIC_CONFIGS,
)
from moldau.server.handlers import alter_configs, create_partitions, create_topics, delete_topics
from tests.harness.worlds.coordination import Coordination
from tests.unit.server.granted import context, context_of

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def names(topics: Any) -> list[str]:
    return [each.name for each in topics]


# CreateTopics.


def create(*topics: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=each) for each in topics], validate_only=True)


def test_topics_without_create_are_not_decided() -> None:
    request = create("mine", "other")
    authorized = create_topics._authorize(context((CREATE_TOPIC, "mine")), request)
    assert names(authorized.request.topics) == ["mine"]
    assert authorized.request.validate_only
    response = authorized.complete(CreateTopicsResponse(topics=[CreatableTopicResult(name="mine")]))
    assert [(each.name, each.error_code) for each in response.topics] == [("mine", 0), ("other", DENIED)]
    # A retry at another controller starts with the whole request.
    assert names(request.topics) == ["mine", "other"]


def test_create_on_the_cluster_allows_all_topics() -> None:
    authorized = create_topics._authorize(context(CREATE_CLUSTER), create("a", "b"))
    assert names(authorized.request.topics) == ["a", "b"]


def test_duplicates_and_the_metadata_log_are_refused_by_the_decision() -> None:
    authorized = create_topics._authorize(context(), create("twice", "twice", METADATA_TOPIC, "other"))
    assert names(authorized.request.topics) == ["twice", "twice", METADATA_TOPIC]


def created() -> CreatableTopicResult:
    configs = [CreatableTopicConfigs(name="retention.ms", value="1")]
    return CreatableTopicResult(name="a", num_partitions=3, replication_factor=2, configs=configs)


def test_configs_need_describe_configs() -> None:
    hidden = create_topics._authorize(context(CREATE_CLUSTER), create("a"))
    (result,) = hidden.complete(CreateTopicsResponse(topics=[created()])).topics
    assert result.error_code == 0
    assert result.topic_config_error_code == DENIED
    assert (result.num_partitions, result.replication_factor, result.configs) == (-1, -1, [])
    grants = (CREATE_CLUSTER, (DESCRIBE_TOPIC_CONFIGS, "a"))
    shown = create_topics._authorize(context(*grants), create("a"))
    (result,) = shown.complete(CreateTopicsResponse(topics=[created()])).topics
    assert (result.topic_config_error_code, result.num_partitions) == (0, 3)


def test_without_an_authorizer_the_request_is_decided_as_it_is() -> None:
    request = create("a", "b")
    assert create_topics._authorize(context_of(None), request).request is request


# CreatePartitions.


def test_partitions_need_alter() -> None:
    topics = [CreatePartitionsTopic(name=each, count=3) for each in ("mine", "other")]
    request = CreatePartitionsRequest(topics=topics)
    authorized = create_partitions._authorize(context((ALTER_TOPIC, "mine")), request)
    assert names(authorized.request.topics) == ["mine"]
    results = authorized.complete(CreatePartitionsResponse()).results
    assert [(each.name, each.error_code) for each in results] == [("other", DENIED)]


# DeleteTopics.


@pytest.fixture
def image() -> MetadataImage:
    coordination = Coordination()
    coordination.create_topic("secret", 1)
    return coordination.image


def delete(image: MetadataImage, request: DeleteTopicsRequest, *grants: Any) -> tuple[list[str], Any]:
    """Return the names and ids that are decided, and the responses of the others."""
    authorized = delete_topics._Authorization(context(*grants), image).split(request)
    decided = [*authorized.request.topic_names, *(each.name or "by id" for each in authorized.request.topics)]
    responses = authorized.complete(DeleteTopicsResponse()).responses
    return decided, [(each.name, each.error_code) for each in responses]


@pytest.mark.parametrize("name", ["secret", "missing"])
def test_a_topic_that_may_not_be_described_is_refused_whether_it_exists_or_not(
    image: MetadataImage, name: str
) -> None:
    request = DeleteTopicsRequest(topic_names=[name])
    assert delete(image, request) == ([], [(name, DENIED)])


def test_a_missing_topic_is_reported_to_clients_that_may_describe_it(image: MetadataImage) -> None:
    request = DeleteTopicsRequest(topic_names=["missing"])
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(image, request, (DESCRIBE_TOPIC, "missing")) == ([], [("missing", unknown)])


def test_the_name_of_an_id_is_shown_to_clients_that_may_describe_it(image: MetadataImage) -> None:
    topic_id = image.topics.by_name["secret"].id
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)])
    assert delete(image, request) == ([], [(None, DENIED)])
    assert delete(image, request, (DESCRIBE_TOPIC, "secret")) == ([], [("secret", DENIED)])
    assert delete(image, request, (DELETE_TOPIC, "secret")) == (["by id"], [])


def test_an_unknown_id_is_never_left_to_the_decision(image: MetadataImage) -> None:
    """The active controller may know a topic that is not committed yet, and would delete it."""
    unknown = DeleteTopicState(name=None, topic_id=b"\7" * 16)
    decided, responses = delete(image, DeleteTopicsRequest(topics=[unknown]))
    assert (decided, responses) == ([], [(None, ErrorCode.UNKNOWN_TOPIC_ID)])


def test_topics_to_delete_are_decided(image: MetadataImage) -> None:
    grants = ((DELETE_TOPIC, "secret"), (DESCRIBE_TOPIC, "secret"))
    request = DeleteTopicsRequest(topic_names=["secret", "other"])
    assert delete(image, request, *grants) == (["secret"], [("other", DENIED)])


def test_the_position_does_not_tell_hidden_topics_from_missing_ones(image: MetadataImage) -> None:
    request = DeleteTopicsRequest(topic_names=["a", "b"])
    authorized = delete_topics._Authorization(context((DESCRIBE_TOPIC, "b")), image).split(request)
    decided = DeleteTopicsResponse(responses=[DeletableTopicResult(name="c")])
    assert names(authorized.complete(decided).responses) == ["a", "b", "c"]


# AlterConfigs.


def test_each_resource_needs_its_own_permission() -> None:
    resources = [
        AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name="mine"),
        AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name="other"),
        AlterConfigsResource(resource_type=ResourceType.BROKER, resource_name="1"),
        AlterConfigsResource(resource_type=ResourceType.GROUP, resource_name="mine"),
        AlterConfigsResource(resource_type=cast(Any, 99), resource_name="unknown"),
    ]
    granted = context((ALTER_TOPIC_CONFIGS, "mine"), ALTER_CLUSTER_CONFIGS)
    accepted, refused = alter_configs.split_by_permission(granted, alter_configs.PERMISSIONS, resources)
    assert [each.resource_name for each in accepted] == ["mine", "1", "unknown"]
    assert [(each.resource_name, error.code) for each, error in refused] == [
        ("other", DENIED),
        ("mine", ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ]
