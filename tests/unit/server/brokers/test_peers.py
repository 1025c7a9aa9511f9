"""What brokers ask each other for transactions and share groups, over a real socket: a node asks itself."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition
from moldau.metadata.delta import MetadataDelta
from moldau.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from moldau.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from moldau.protocol.stored.metadata import FenceBrokerRecord
from moldau.server.brokers.batched_calls import BatchedCalls
from moldau.server.brokers.peers import BrokerPeers, endpoint_of
from moldau.server.coordinators.add_partitions_channel import AddPartitions, add_partitions_channel
from moldau.server.coordinators.marker_sender import Marker, marker_channel
from moldau.server.node import Node
from moldau.server.share.state_channel import StateChannels
from moldau.share.keys import SharePartitionKey
from moldau.statemachine.coordinator_records import EndTransaction, Producer
from moldau.transactions.init_producer_id import InitProducerId
from tests.harness.nodes.node import connected, running_node
from tests.unit.server.coordinators.test_coordinator import until
from tests.unit.server.handlers.test_produce import create

ONE_REPLICA = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
}


def counting(peers: BrokerPeers, sizes: list[int]) -> BatchedCalls[str, str]:
    """Questions that are answered with themselves; how many came in one request is kept."""

    def pack(questions: Any) -> ListGroupsRequest:
        sizes.append(len(questions))
        return ListGroupsRequest(states_filter=list(questions))

    def unpack(questions: Any, response: ListGroupsResponse) -> list[str]:
        assert response.error_code == ErrorCode.NONE
        return list(questions)

    return BatchedCalls(peers, pack=pack, unpack=unpack, identity=lambda question: question)


def test_calls_share_requests_except_those_with_the_same_identity(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path, ONE_REPLICA) as node:
            sizes: list[int] = []
            calls = counting(node.services.broker_peers("test"), sizes)
            asked = ["a", "b", "a", "c", "a"]
            assert await asyncio.gather(*(calls.ask(node.id, each) for each in asked)) == asked
            assert sizes == [3, 1, 1]
            other_lane = [calls.ask(node.id, "a", lane="x"), calls.ask(node.id, "a", lane="y")]
            assert await asyncio.gather(*other_lane) == ["a", "a"]
            assert sizes[3:] == [1, 1]
            await calls.close()

    asyncio.run(main())


def test_an_unavailable_broker_fails_only_its_own_calls(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path, ONE_REPLICA) as node:
            calls = counting(node.services.broker_peers("test"), [])
            with pytest.raises(KafkaError) as refused:
                await calls.ask(77, "a")
            assert refused.value.code is ErrorCode.BROKER_NOT_AVAILABLE
            assert await calls.ask(node.id, "a") == "a"
            await calls.close()
            with pytest.raises(KafkaError):
                await calls.ask(77, "a")

    asyncio.run(main())


def test_a_connection_to_a_fenced_broker_is_closed_with_its_requests_in_flight(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path, ONE_REPLICA) as node:
            peers = node.services.broker_peers("test")
            delta = MetadataDelta(node.image)
            epoch = node.image.cluster.brokers[node.id].epoch
            delta.replay(FenceBrokerRecord(id=node.id, epoch=epoch))
            fenced = delta.apply(node.image.offset + 1, 1)
            listener = node.config.inter_broker_listener_name
            assert endpoint_of(node.image, node.id, listener) is not None
            assert endpoint_of(fenced, node.id, listener) is None
            asked = asyncio.create_task(peers.call(node.id, ListGroupsRequest()))
            await asyncio.sleep(0)
            peers.apply(fenced)
            with pytest.raises(KafkaError) as lost:
                await asked
            assert lost.value.code is ErrorCode.NETWORK_EXCEPTION
            peers.apply(node.image)
            assert (await peers.call(node.id, ListGroupsRequest())).error_code == ErrorCode.NONE
            peers.close()

    asyncio.run(main())


async def new_producer(node: Node, transactional_id: str) -> Producer:
    transactions = node.broker.coordinators.transactions
    await node.broker.coordinators.internal_topics.ensure(TRANSACTION_STATE_TOPIC)
    await until(lambda: list(transactions.active_shards()))
    init = InitProducerId(transactional_id, 60_000)
    answer = await transactions.decide(transactional_id, lambda shard: shard.init_producer_id(init))
    return Producer(answer.producer_id, answer.producer_epoch)


def test_partitions_are_added_and_markers_written_over_the_network(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path, ONE_REPLICA) as node, connected(node) as connection:
            await create(connection, "t")
            a, b = await new_producer(node, "a"), await new_producer(node, "b")
            additions = add_partitions_channel(node.services.broker_peers("test"))
            here, nowhere = TopicPartition("t", 0), TopicPartition("t", 9)
            answers = await asyncio.gather(
                additions.ask(node.id, AddPartitions("a", a, [here], verify_only=False)),
                additions.ask(node.id, AddPartitions("b", b, [here], verify_only=True)),
                additions.ask(node.id, AddPartitions("a", a, [here], verify_only=True)),
                additions.ask(node.id, AddPartitions("b", b, [here, nowhere], verify_only=False)),
            )
            assert answers == [
                {here: ErrorCode.NONE},
                {here: ErrorCode.TRANSACTION_ABORTABLE},
                {here: ErrorCode.NONE},
                {here: ErrorCode.OPERATION_NOT_ATTEMPTED, nowhere: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
            ]
            markers = marker_channel(node.services.broker_peers("test"))
            answers = await asyncio.gather(
                markers.ask(node.id, Marker(EndTransaction(a, True, 5), [here, nowhere])),
                markers.ask(node.id, Marker(EndTransaction(b, False, 5), [here])),
                markers.ask(node.id, Marker(EndTransaction(a, True, 4), [here])),
            )
            assert answers == [
                {here: ErrorCode.NONE, nowhere: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
                {here: ErrorCode.NONE},
                {here: ErrorCode.TRANSACTION_COORDINATOR_FENCED},
            ]
            assert node.broker.replicas.by_name("t", 0).usable_log().log_end_offset == 2
            await additions.close()
            await markers.close()

    asyncio.run(main())


def test_share_group_state_is_persisted_over_the_network(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path, ONE_REPLICA) as node, connected(node) as connection:
            await create(connection, "t")
            await node.broker.coordinators.internal_topics.ensure(SHARE_STATE_TOPIC)
            await until(lambda: len(list(node.broker.coordinators.share.active_shards())) == 3)
            channels = StateChannels(node.services.broker_peers("test"))
            key = SharePartitionKey("g", node.image.topics.by_name["t"].id, 0)
            initial = initialize_share_group_state.PartitionData(partition=0, state_epoch=1, start_offset=3)
            await channels.initialize.send(node.id, key, initial)
            written = write_share_group_state.PartitionData(
                partition=0,
                state_epoch=1,
                leader_epoch=0,
                start_offset=4,
                delivery_complete_count=2,
                state_batches=[
                    write_share_group_state.StateBatch(
                        first_offset=5, last_offset=6, delivery_state=2, delivery_count=1
                    )
                ],
            )
            await channels.write.send(node.id, key, written)
            summary = read_share_group_state_summary.PartitionData(partition=0, leader_epoch=-1)
            told = await channels.summary.send(node.id, key, summary)
            assert (told.start_offset, told.delivery_complete_count) == (4, 2)
            read = await channels.read.send(
                node.id, key, read_share_group_state.PartitionData(partition=0, leader_epoch=0)
            )
            assert (read.state_epoch, read.start_offset, len(read.state_batches)) == (1, 4, 1)
            await channels.delete.send(node.id, key, delete_share_group_state.PartitionData(partition=0))
            with pytest.raises(KafkaError):
                await channels.write.send(node.id, key, written)
            await channels.close()

    asyncio.run(main())
