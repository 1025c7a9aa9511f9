"""Requests of brokers and controllers: a client without CLUSTER_ACTION learns nothing and changes nothing.

The handlers get no dependencies here, so they fail if they do anything before they authorise.
"""

from __future__ import annotations

import asyncio
import inspect
from types import ModuleType
from typing import Any, cast

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.apis import APIS
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from moldau.protocol.schema import Message
from moldau.security.acl.permissions import ALTER_CLUSTER, CLUSTER_ACTION
from moldau.server.handlers import (
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_partition,
    assign_replicas_to_dirs,
    begin_quorum_epoch,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    delete_share_group_state,
    end_quorum_epoch,
    envelope,
    fetch_metadata,
    fetch_snapshot,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    update_raft_voter,
    vote,
    write_share_group_state,
    write_txn_markers,
)
from moldau.server.settings import CONTROLLER
from tests.unit.server.granted import context

REFUSED_AS_A_WHOLE = [
    allocate_producer_ids,
    alter_partition,
    assign_replicas_to_dirs,
    begin_quorum_epoch,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    end_quorum_epoch,
    envelope,
    fetch_snapshot,
    update_raft_voter,
    vote,
]
SHARE_STATE = [
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
]


def call(module: ModuleType, request: Message, *grants: Any, version: int = 0, role: str = CONTROLLER) -> Any:
    handle = cast(Any, module).handle
    nothing = [None] * (len(inspect.signature(handle).parameters) - 2)
    result = handle(*nothing, context(*grants, version=version, role=role), request)
    return asyncio.run(result) if inspect.iscoroutine(result) else result


def request_of(module: ModuleType) -> Message:
    name = module.__name__.rpartition(".")[2]
    api = next(api for api in APIS.values() if api.key.name.lower() == name)
    return api.request()


@pytest.mark.parametrize("module", REFUSED_AS_A_WHOLE, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_client_without_cluster_action_is_refused(module: ModuleType) -> None:
    with pytest.raises(KafkaError) as refused:
        call(module, request_of(module), ALTER_CLUSTER)
    assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize("module", SHARE_STATE, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_partition_of_a_share_state_request_is_refused(module: Any) -> None:
    request: Any = request_of(module)
    topic = next(each.struct for each in request.FIELDS if each.name == "topics")
    partition = next(each.struct for each in topic.FIELDS if each.name == "partitions")
    request.topics = [topic(partitions=[partition(partition=3)])]
    response = call(module, request)
    (result,) = response.results
    assert [(each.partition, each.error_code) for each in result.partitions] == [
        (3, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    ]


@pytest.mark.parametrize("version", [4, 12, 17])
def test_the_metadata_log_is_not_fetched(version: int) -> None:
    topic = FetchTopic(topic="__cluster_metadata", partitions=[FetchPartition(partition=0)])
    response = call(fetch_metadata, FetchRequest(topics=[topic]), version=version)
    codes = [each.error_code for topic in response.responses for each in topic.partitions]
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    # Old versions have only the errors of partitions.
    assert codes == ([ErrorCode.CLUSTER_AUTHORIZATION_FAILED] if version < 13 else [])


def test_markers_are_not_written() -> None:
    topic = WritableTxnMarkerTopic(name="orders", partition_indexes=[0, 1])
    request = WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=1, topics=[topic])])
    (marker,) = call(write_txn_markers, request).markers
    assert [each.error_code for each in marker.topics[0].partitions] == [
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    ] * 2


def test_transactions_are_verified_for_brokers_only() -> None:
    with pytest.raises(KafkaError) as refused:
        call(add_partitions_to_txn, request_of(add_partitions_to_txn), version=4)
    assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_node_reaches_the_controller() -> None:
    with pytest.raises(AttributeError):
        call(vote, request_of(vote), CLUSTER_ACTION)
