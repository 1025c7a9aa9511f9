"""Rare cases of Produce, Fetch, ListOffsets and InitProducerId on the wire.

The expected responses are those of Apache Kafka 4.3; `tests/interop/differential` compares the rest.
"""

from __future__ import annotations

from typing import Any

import pytest

from moldau.protocol.messages.describe_producers import DescribeProducersRequest
from moldau.protocol.messages.describe_producers import TopicRequest as ProducersOfTopic
from moldau.protocol.messages.fetch import FetchRequest, ReplicaState
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import (
    create_and_wait,
    fetch,
    fetch_request,
    metadata_of,
    produce,
    produce_request,
)
from tests.harness.wire.wire import Wire
from tests.integration.conftest import StartNode

UNKNOWN_SERVER_ERROR = -1
NOT_LEADER_OR_FOLLOWER = 6
INVALID_TOPIC_EXCEPTION = 17
INVALID_REQUEST = 42
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
FENCED_LEADER_EPOCH = 74
INVALID_UPDATE_VERSION = 95

TRANSACTIONAL = 0x10


@pytest.fixture
def wire(bootstrap: str, topic: str) -> Any:
    create_and_wait(bootstrap, topic)
    with Wire(bootstrap) as connection:
        yield connection


def test_transactional_records_need_a_transactional_id(bootstrap: str, topic: str, wire: Wire) -> None:
    """If accepted, they would hold back the last stable offset for `read_committed` consumers."""
    records = batch(attributes=TRANSACTIONAL, producer_id=7, producer_epoch=0, sequence=0)
    answer = produce(bootstrap, topic, records)
    assert (answer.error_code, answer.base_offset) == (TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1)
    assert fetch(bootstrap, topic).high_watermark == 0


def test_a_transactional_id_alone_opens_no_transaction(topic: str, wire: Wire) -> None:
    request = produce_request(topic, batch())
    request.transactional_id = "mine"
    assert wire.call(request, 12).responses[0].partition_responses[0].error_code == 0


def test_an_out_of_order_sequence_answer_carries_the_log_start_offset(
    bootstrap: str, topic: str, wire: Wire
) -> None:
    produce(bootstrap, topic, batch(producer_id=7, producer_epoch=0, sequence=0))
    answer = produce(bootstrap, topic, batch(producer_id=7, producer_epoch=0, sequence=5))
    assert (answer.error_code, answer.log_start_offset) == (OUT_OF_ORDER_SEQUENCE_NUMBER, 0)


@pytest.mark.parametrize("version", [6, 12, 13])
def test_an_unknown_isolation_level_is_refused(
    bootstrap: str, topic: str, wire: Wire, version: int, on_moldau: bool
) -> None:
    request = fetch_request(topic)
    request.topics[0].topic_id = metadata_of(bootstrap, topic).topic_id
    request.isolation_level = 5
    expected = INVALID_REQUEST if on_moldau else UNKNOWN_SERVER_ERROR
    answer = wire.call(request, version)
    if version >= 7:
        assert answer.error_code == expected
    if version < 13:
        assert answer.responses[0].partitions[0].error_code == expected


def test_aborted_transactions_are_empty_for_unknown_topics_and_null_for_known_ones(
    topic: str, wire: Wire
) -> None:
    assert wire.call(fetch_request("nobody"), 12).responses[0].partitions[0].aborted_transactions == []
    assert wire.call(fetch_request(topic), 12).responses[0].partitions[0].aborted_transactions is None


def test_a_fetch_session_may_start_empty(wire: Wire) -> None:
    assert wire.call(FetchRequest(session_epoch=0), 12).session_id != 0


def test_a_follower_without_a_replica_gets_the_current_leader(bootstrap: str, topic: str, wire: Wire) -> None:
    request = fetch_request(topic)
    request.replica_id = 7
    assert wire.call(request, 12).responses[0].partitions[0].error_code == NOT_LEADER_OR_FOLLOWER
    request = fetch_request(topic)
    request.topics[0].topic_id = metadata_of(bootstrap, topic).topic_id
    request.replica_state = ReplicaState(replica_id=7)
    answer = wire.call(request, 17).responses[0].partitions[0]
    assert (answer.error_code, answer.current_leader.leader_id) == (NOT_LEADER_OR_FOLLOWER, 1)


def test_a_fenced_leader_epoch_answer_carries_the_new_leader(start_node: StartNode) -> None:
    node = start_node()
    create_and_wait(node.bootstrap_servers, "t")
    node.restart()
    with Wire(node.bootstrap_servers) as wire:
        request = fetch_request("t")
        request.topics[0].topic_id = metadata_of(node.bootstrap_servers, "t").topic_id
        request.topics[0].partitions[0].current_leader_epoch = 0
        answer = wire.call(request, 16)
        told = answer.responses[0].partitions[0]
        assert told.error_code == FENCED_LEADER_EPOCH
        assert told.current_leader.leader_id == 1
        assert told.current_leader.leader_epoch > 0
        assert [(each.node_id, each.port) for each in answer.node_endpoints] == [(1, node.port)]


@pytest.mark.parametrize("version", [1, 6, 11])
def test_duplicate_partitions_in_list_offsets_are_refused(topic: str, wire: Wire, version: int) -> None:
    asked = [ListOffsetsPartition(partition_index=0, timestamp=stamp) for stamp in (-1, -2)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)])
    answer = wire.call(request, version).topics[0].partitions
    assert [(each.partition_index, each.error_code) for each in answer] == [(0, INVALID_REQUEST)]


@pytest.mark.parametrize(("producer", "epoch"), [(-1, 3), (4000, -1)])
def test_a_producer_id_without_an_epoch_is_refused(wire: Wire, producer: int, epoch: int) -> None:
    request = InitProducerIdRequest(transactional_id=None, producer_id=producer, producer_epoch=epoch)
    answer = wire.call(request, 4)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (INVALID_REQUEST, -1, -1)


def test_describe_producers_of_an_invalid_topic_name_is_refused(wire: Wire) -> None:
    asked = ProducersOfTopic(name="a/b", partition_indexes=[0])
    answer = wire.call(DescribeProducersRequest(topics=[asked]), 0).topics[0].partitions[0]
    assert answer.error_code == INVALID_TOPIC_EXCEPTION
    assert answer.error_message


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_unknown_feature_at_level_0_is_refused(wire: Wire, version: int) -> None:
    update = FeatureUpdateKey(feature="nobody.version", max_version_level=0)
    if version == 0:
        update.allow_downgrade = True
    else:
        update.upgrade_type = 2
    assert wire.call(UpdateFeaturesRequest(feature_updates=[update]), version).error_code == (
        INVALID_UPDATE_VERSION
    )
