"""Errors about a whole request in responses with errors per item only."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.errors import failure_response
from moldau.protocol.messages import alter_client_quotas, alter_configs, incremental_alter_configs
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics import CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest
from moldau.protocol.schema import Message
from tests.unit.controller.harness import new_topic
from tests.unit.metadata.builders import uid

FULL = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")


def items(request: Message, attribute: str) -> list[tuple[int, str | None]]:
    response = failure_response(request, FULL)
    return [(item.error_code, item.error_message) for item in getattr(response, attribute)]


def test_an_error_of_the_whole_request_is_repeated_in_every_item() -> None:
    failed = (ErrorCode.KAFKA_STORAGE_ERROR, "no room")
    topics = CreateTopicsRequest(topics=[new_topic("a"), new_topic("b"), new_topic("b")])
    assert items(topics, "topics") == [failed] * 2
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=uid(1))], topic_names=["a"])
    assert items(delete, "responses") == [failed] * 2
    assert items(CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a")]), "results") == [failed]
    for module in (incremental_alter_configs, alter_configs):
        resource = module.AlterConfigsResource(resource_type=2, resource_name="a")
        name = (
            "IncrementalAlterConfigsRequest" if module is incremental_alter_configs else "AlterConfigsRequest"
        )
        assert items(getattr(module, name)(resources=[resource]), "responses") == [failed]
    entry = alter_client_quotas.RequestEntryData()
    assert items(alter_client_quotas.AlterClientQuotasRequest(entries=[entry]), "entries") == [failed]


def test_responses_with_a_top_level_error_code_are_not_built_here() -> None:
    assert failure_response(ElectLeadersRequest(), FULL) is None
