"""End markers with a full disk, and with very many partitions."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

from moldau.base.ids import TRANSACTION_STATE_TOPIC, TopicPartition
from moldau.server.node import Node
from moldau.statemachine.coordinator_records import EndTransaction, Producer
from moldau.transactions.end_txn import EndTxn
from moldau.transactions.init_producer_id import InitProducerId
from moldau.transactions.state import TransactionStatus
from tests.harness.nodes.node import connected, running_node
from tests.unit.server.coordinators.test_coordinator import until
from tests.unit.server.handlers.test_produce import OneBadFolder, create

ONE_REPLICA = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
}


async def committed_transaction(node: Node) -> None:
    """Commit a transaction that wrote to t-0; it is prepared, and no marker is written yet."""
    transactions = node.broker.coordinators.transactions
    await node.broker.coordinators.internal_topics.ensure(TRANSACTION_STATE_TOPIC)
    await until(lambda: list(transactions.active_shards()))
    init = InitProducerId("id", 60_000)
    answer = await transactions.decide("id", lambda shard: shard.init_producer_id(init))
    producer = Producer(answer.producer_id, answer.producer_epoch)
    partitions = frozenset({TopicPartition("t", 0)})
    await transactions.write("id", lambda shard: shard.add_partitions("id", producer, partitions, 2))
    end = EndTxn("id", producer, True, 2)
    await transactions.decide("id", lambda shard: shard.end_transaction(end))


def status(node: Node) -> TransactionStatus:
    ((_, shard),) = node.broker.coordinators.transactions.active_shards()
    return shard.describe("id").status


def test_completing_a_transaction_is_retried_after_a_full_disk(tmp_path: Path) -> None:
    async def main() -> None:
        disk = OneBadFolder(tmp_path / "logs" / f"{TRANSACTION_STATE_TOPIC}-0")
        async with running_node(tmp_path, ONE_REPLICA, disk) as node, connected(node) as connection:
            await create(connection, "t")
            await committed_transaction(node)
            disk.broken = errno.ENOSPC
            log = node.broker.replicas.by_name("t", 0).usable_log()
            await until(lambda: log.log_end_offset == 1)
            # Long enough for the record of the completed end to be refused.
            await asyncio.sleep(0.05)
            assert status(node) is TransactionStatus.PREPARE_COMMIT
            disk.broken = None
            await until(lambda: status(node) is TransactionStatus.COMPLETE_COMMIT)
            assert log.log_end_offset == 1, "the marker is written once"

    asyncio.run(main())


def test_writing_many_markers_does_not_block_the_loop(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path, ONE_REPLICA) as node, connected(node) as connection:
            await create(connection, "t")
            turns = 0

            async def other() -> None:
                nonlocal turns
                while True:
                    await asyncio.sleep(0)
                    turns += 1

            task = asyncio.create_task(other())
            end = EndTransaction(Producer(7, 1), True, 0)
            await node.broker.coordinators.txn_marker_writer.write(end, [TopicPartition("t", 0)] * 2000)
            task.cancel()
            assert turns > 3

    asyncio.run(main())
