"""Produce and Fetch without permissions: nothing is written, read or learned about followers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from moldau.base.errors import ErrorCode
from moldau.network.connection import CloseConnection
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.replication.partition import Partition
from moldau.security.acl.permissions import CLUSTER_ACTION, READ_TOPIC, WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from moldau.server.dispatch.apis import broker_handlers
from moldau.server.node import Node
from moldau.server.partitions.followers import Follower
from tests.harness.nodes.node import connected, running_node
from tests.harness.wire.batches import batch
from tests.unit.server.granted import context

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
TRANSACTIONAL = {"attributes": 0x10, "producer_id": 5, "producer_epoch": 0, "sequence": 0}


async def create_topics(node: Node) -> dict[str, bytes]:
    topics = [CreatableTopic(name=each, num_partitions=1, replication_factor=1) for each in ("mine", "other")]
    async with connected(node) as connection:
        created = await connection.call(CreateTopicsRequest(topics=topics))
    return {each.name: bytes(each.topic_id) for each in created.topics}


async def answer(node: Node, key: ApiKey, request: Any, version: int, *grants: Any) -> Any:
    sender = context(*grants, version=version)._replace(connection=Mock(has_more=False))
    result: Any = broker_handlers(node.broker)[key](sender, request)
    result = getattr(result, "response", result)
    return await result if asyncio.iscoroutine(result) else result


def end_offset(node: Node, topic: str) -> int:
    return node.broker.replicas.by_name(topic, 0).leader_log().log_end_offset


def records(acks: int = -1, ids: dict[str, bytes] | None = None, **changes: Any) -> ProduceRequest:
    """Records for both topics, by name or by id."""
    topics = []
    for name in ("mine", "other"):
        data = PartitionProduceData(index=0, records=memoryview(bytearray(batch(**changes))))
        topic = TopicProduceData(name=name if ids is None else "", partition_data=[data])
        if ids is not None:
            topic.topic_id = ids[name]
        topics.append(topic)
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)


def codes(response: Any) -> list[int]:
    return [topic.partition_responses[0].error_code for topic in response.responses]


@pytest.mark.parametrize("version", [12, 13])
def test_only_topics_with_write_are_written(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            ids = await create_topics(node)
            request = records(ids=ids if version >= 13 else None)
            response = await answer(node, ApiKey.PRODUCE, request, version, (WRITE_TOPIC, "mine"))
            assert codes(response) == [0, DENIED]
            assert (end_offset(node, "mine"), end_offset(node, "other")) == (1, 0)

    asyncio.run(scenario())


def test_a_transaction_of_another_client_is_refused_as_a_whole(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await create_topics(node)
            request = records(**TRANSACTIONAL)
            request.transactional_id = "theirs"
            grants = ((WRITE_TOPIC, "mine"), (WRITE_TOPIC, "other"), (WRITE_TRANSACTIONAL_ID, "mine"))
            response = await answer(node, ApiKey.PRODUCE, request, 12, *grants)
            assert codes(response) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
            assert (end_offset(node, "mine"), end_offset(node, "other")) == (0, 0)

    asyncio.run(scenario())


def test_without_a_response_the_connection_is_closed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await create_topics(node)
            with pytest.raises(CloseConnection):
                await answer(node, ApiKey.PRODUCE, records(acks=0), 12)

    asyncio.run(scenario())


def fetch(*, replica_id: int = -1, **session: int) -> FetchRequest:
    partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic=name, partitions=[partition]) for name in ("mine", "other")]
    return FetchRequest(
        replica_id=replica_id, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics, **session
    )


def fetched(response: Any) -> list[int]:
    return [topic.partitions[0].error_code for topic in response.responses]


def test_only_topics_with_read_are_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await create_topics(node)
            response = await answer(node, ApiKey.FETCH, fetch(session_epoch=-1), 12, (READ_TOPIC, "mine"))
            assert fetched(response) == [0, DENIED]
            assert response.responses[1].partitions[0].high_watermark == -1

    asyncio.run(scenario())


def test_a_revoked_permission_ends_an_incremental_session_with_errors(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await create_topics(node)
            grants = ((READ_TOPIC, "mine"), (READ_TOPIC, "other"))
            first = await answer(node, ApiKey.FETCH, fetch(session_epoch=0), 12, *grants)
            assert fetched(first) == [0, 0]
            again = FetchRequest(max_wait_ms=0, session_id=first.session_id, session_epoch=1)
            response = await answer(node, ApiKey.FETCH, again, 12, (READ_TOPIC, "mine"))
            assert [(each.topic, each.partitions[0].error_code) for each in response.responses] == [
                ("other", DENIED)
            ]

    asyncio.run(scenario())


def test_a_waiting_fetch_does_not_read_what_another_request_adds_to_its_session(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await create_topics(node)
            both = (WRITE_TOPIC, "mine"), (WRITE_TOPIC, "other")
            grant = (READ_TOPIC, "mine")
            first = fetch(session_epoch=0)
            del first.topics[1]
            session_id = (await answer(node, ApiKey.FETCH, first, 12, grant)).session_id
            wait = FetchRequest(
                max_wait_ms=20_000, min_bytes=1, max_bytes=1 << 20, session_id=session_id, session_epoch=1
            )
            waiting = asyncio.create_task(answer(node, ApiKey.FETCH, wait, 12, grant))
            await until(lambda: len(node.broker.replicas.by_name("mine", 0).progress.high_watermark) == 1)
            adding = fetch(session_id=session_id, session_epoch=2)
            assert DENIED in fetched(await answer(node, ApiKey.FETCH, adding, 12, grant))
            await answer(node, ApiKey.PRODUCE, records(), 12, *both)
            response = await asyncio.wait_for(waiting, 5)
            assert [each.topic for each in response.responses] == ["mine"]

    asyncio.run(scenario())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.002)


def test_an_impostor_does_not_move_the_position_of_a_follower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touched: list[Any] = []
    monkeypatch.setattr(Partition, "note_fetch", lambda *arguments: touched.append(arguments))
    monkeypatch.setattr(Follower, "idle_partition", lambda *arguments: touched.append(arguments))
    monkeypatch.setattr(Follower, "replica", lambda *arguments: touched.append(arguments))

    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await create_topics(node)
            asked = fetch(replica_id=2, session_epoch=-1)
            grants = ((READ_TOPIC, "mine"), (READ_TOPIC, "other"))
            assert fetched(await answer(node, ApiKey.FETCH, asked, 12, *grants)) == [DENIED] * 2
            assert touched == []
            await answer(node, ApiKey.FETCH, asked, 12, CLUSTER_ACTION)
            assert touched

    asyncio.run(scenario())
