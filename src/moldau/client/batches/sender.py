"""Send queued batches to the leaders of their partitions until they are acknowledged.

How it works. `_pump` runs after every change: it takes the first batch of each partition without a batch in
flight, puts those of one leader into a request, and sends it. The response decides for each batch:
acknowledged, to be sent again, to be split, or failed. After the first failure, queued batches are dropped
and all callers get the error.

Invariants: everything runs on one loop; `_pump` never waits; the bytes queued and in flight are bounded,
and callers wait for free space.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.batches.leaders import Leaders
from moldau.client.batches.queues import PartitionQueue, QueuedBatch
from moldau.client.batches.transactions import ProducerState
from moldau.client.batches.types import RecordsRefused
from moldau.client.wire.cluster import Cluster, is_retriable
from moldau.client.wire.errors import ProducerFenced, about, error_of
from moldau.network.client import NodeConnection
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

_ALL_REPLICAS = -1
#: The newest version for transactions with AddPartitionsToTxn.
_WITH_ADD_PARTITIONS = 11
_CONCURRENT_S = 0.02
_STORED = {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}
_TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
_FORGOTTEN = {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID}


class BatchSender:
    def __init__(
        self,
        cluster: Cluster,
        producer: ProducerState,
        leaders: Leaders,
        *,
        delivery_timeout_ms: int,
        max_request_bytes: int,
        max_pending_bytes: int,
        requests_per_node: int,
        on_stored: Callable[[TopicPartition, int, int], None] | None = None,
    ) -> None:
        #: The error after which nothing is sent any more.
        self.failure: KafkaError | None = None
        self.records_stored = 0
        self._cluster = cluster
        self._producer = producer
        self._leaders = leaders
        self._delivery_timeout_s = delivery_timeout_ms / 1000
        self._max_request_bytes = max_request_bytes
        self._max_pending_bytes = max_pending_bytes
        self._requests_per_node = requests_per_node
        self._on_stored = on_stored
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._busy: dict[TopicPartition, PartitionQueue] = {}
        self._requests: dict[int, int] = defaultdict(int)
        self._pending_bytes = 0
        self._progress = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._updating = self._adding = False

    async def accept(self, batches: Iterable[tuple[TopicPartition, bytearray | memoryview]]) -> None:
        """Queue batches, waiting for free space; the sender writes into their buffers."""
        now = asyncio.get_running_loop().time
        for partition, buffer in batches:
            if self._pending_bytes >= self._max_pending_bytes:
                self._pump()
            await self._until(lambda: self._pending_bytes < self._max_pending_bytes)
            queue = self._queues.get(partition)
            if queue is None:
                queue = self._queues[partition] = PartitionQueue(partition)
            queue.waiting.append(QueuedBatch(buffer, now() + self._delivery_timeout_s))
            self._busy[partition] = queue
            self._pending_bytes += len(buffer)
        self._pump()

    async def flush(self) -> None:
        """Wait until all batches are acknowledged."""
        await self._until(lambda: not self._busy)

    async def drop(self) -> bool:
        """Drop queued batches and wait for those in flight; return whether the result of one is unknown."""
        uncertain = self.failure is not None or any(queue.uncertain for queue in self._busy.values())
        self._drop_waiting()
        while self._tasks:
            await asyncio.wait(self._tasks)
            self._drop_waiting()
        self.failure = None
        return uncertain

    def reset_sequences(self) -> None:
        """Restart all sequences at 0, for a new producer id or epoch."""
        self._queues.clear()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _until(self, condition: Any) -> None:
        while self.failure is None and not condition():
            self._progress.clear()
            await self._progress.wait()
        if self.failure is not None:
            raise self.failure

    def _pump(self) -> None:
        now = asyncio.get_running_loop().time()
        by_node: dict[int, list[PartitionQueue]] = defaultdict(list)
        without_leader, not_added = set(), set()
        for partition, queue in self._busy.items():
            if not queue.sendable or queue.not_before > now:
                continue
            if queue.waiting[0].deadline < now:
                self._fail(_timed_out(partition, self._delivery_timeout_s))
                return
            leader = self._leaders.leader(partition)
            if leader is None:
                without_leader.add(partition.topic)
            elif self._producer.must_add(partition):
                not_added.add(partition)
            else:
                by_node[leader].append(queue)
        if without_leader and not self._updating:
            self._updating = True
            self._start(self._update_leaders(without_leader))
        if not_added and not self._adding:
            self._adding = True
            self._start(self._add_partitions(not_added))
        for node, queues in by_node.items():
            self._send(node, queues)

    def _send(self, node: int, queues: list[PartitionQueue]) -> None:
        """Send the queued batches of a node, up to its maximum of requests in flight."""
        producer = self._producer
        position = 0
        while position < len(queues) and self._requests[node] < self._requests_per_node:
            chosen: list[PartitionQueue] = []
            size = 0
            while position < len(queues):
                next_size = queues[position].waiting[0].size
                if chosen and size + next_size > self._max_request_bytes:
                    break
                size += next_size
                chosen.append(queues[position])
                position += 1
            for queue in chosen:
                queue.take(producer.producer_id, producer.epoch, transactional=producer.in_transaction)
            self._requests[node] += 1
            self._start(self._request(node, chosen))

    async def _request(self, node: int, queues: list[PartitionQueue]) -> None:
        by_partition = {queue.partition: queue for queue in queues}
        try:
            for where, answer in (await self._produce(node, queues)).items():
                queue = by_partition.pop(where, None)
                if queue is not None:
                    self._handle_response(queue, answer)
            missing = KafkaError(ErrorCode.NETWORK_EXCEPTION, f"the response of node {node} lacks partitions")
            for queue in by_partition.values():
                self._retry(queue, missing)
        except KafkaError as error:
            for queue in by_partition.values():
                self._failed(queue, error)
        finally:
            self._requests[node] -= 1
        self._pump()

    async def _produce(
        self, node: int, queues: list[PartitionQueue]
    ) -> dict[TopicPartition, PartitionProduceResponse]:
        topics: dict[str, TopicProduceData] = {}
        for queue in queues:
            name, index = queue.partition
            if name not in topics:
                topics[name] = TopicProduceData(name=name, topic_id=self._leaders.topic_id(name))
            batch = queue.in_flight
            records: Any = None if batch is None else batch.buffer
            topics[name].partition_data.append(PartitionProduceData(index=index, records=records))
        producer, timeout_ms = self._producer, self._cluster.settings.request_timeout_ms
        request = ProduceRequest(
            transactional_id=producer.transactional_id if producer.in_transaction else None,
            acks=_ALL_REPLICAS,
            timeout_ms=timeout_ms,
            topic_data=list(topics.values()),
        )
        connection = await self._cluster.node_connection(node)
        answer: ProduceResponse = await connection.call(
            request, self._version(connection), timeout_ms=timeout_ms
        )
        name_of = self._leaders.topic_name
        return {
            TopicPartition(name_of(topic.name, topic.topic_id), each.index): each
            for topic in answer.responses
            for each in topic.partition_responses
        }

    def _version(self, connection: NodeConnection) -> int | None:
        newest = connection.version_for(APIS[ApiKey.PRODUCE])
        if newest is None or not self._producer.in_transaction or self._producer.implicit:
            return newest
        return min(newest, _WITH_ADD_PARTITIONS)

    def _handle_response(self, queue: PartitionQueue, answer: PartitionProduceResponse) -> None:
        code = ErrorCode.of(answer.error_code)
        batch = queue.in_flight
        if batch is None:
            return
        if code in _STORED:
            queue.acknowledge(answer.base_offset)
            self.records_stored += batch.records
            if self._on_stored is not None:
                self._on_stored(queue.partition, answer.base_offset, batch.records)
            self._done(queue, batch.size)
        elif code in _TOO_LARGE and batch.records > 1:
            parts = queue.split()
            self._pending_bytes += sum(part.size for part in parts) - batch.size
        elif code in _FORGOTTEN and self._may_reset_sequence(queue, answer):
            queue.reset_sequence(raise_epoch=not self._producer.in_transaction)
            self._retry(queue, error_of(code))
        else:
            self._failed(queue, _refusal(queue.partition, batch, answer))

    def _may_reset_sequence(self, queue: PartitionQueue, answer: PartitionProduceResponse) -> bool:
        """Return whether the broker has lost the producer state; in transactions, with all its records."""
        if not self._producer.in_transaction:
            return True
        gone = queue.acknowledged_offset <= answer.log_start_offset
        return answer.error_code == ErrorCode.UNKNOWN_PRODUCER_ID and gone

    def _failed(self, queue: PartitionQueue, error: KafkaError) -> None:
        if self.failure is None and is_retriable(error):
            self._retry(queue, error)
        else:
            batch, queue.in_flight = queue.in_flight, None
            self._done(queue, batch.size if batch else 0)
            self._fail(error)

    def _retry(self, queue: PartitionQueue, error: KafkaError) -> None:
        now = asyncio.get_running_loop().time()
        batch = queue.in_flight
        if batch is None:
            return
        if batch.deadline < now:
            queue.in_flight = None
            self._done(queue, batch.size)
            self._fail(_timed_out(queue.partition, self._delivery_timeout_s, error))
            return
        pause_s = self._cluster.settings.backoff.seconds(batch.attempts)
        if error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
            pause_s = _CONCURRENT_S
        else:
            self._leaders.forget(queue.partition)
        queue.put_back(now + pause_s)
        asyncio.get_running_loop().call_later(pause_s + 0.001, self._pump)

    def _done(self, queue: PartitionQueue, size: int) -> None:
        self._pending_bytes -= size
        if not queue.waiting and queue.in_flight is None:
            self._busy.pop(queue.partition, None)
        self._progress.set()

    def _fail(self, error: KafkaError) -> None:
        if self.failure is None:
            self.failure = error
        self._drop_waiting()

    def _drop_waiting(self) -> None:
        for queue in list(self._busy.values()):
            self._done(queue, queue.drop())
        self._progress.set()

    async def _update_leaders(self, topics: set[str]) -> None:
        """Update the leaders; partitions that still have none are updated again after a delay."""
        try:
            await self._leaders.update(topics)
            pause_s = 0.0 if self._all_have_leaders() else self._cluster.settings.backoff.initial_seconds
        except KafkaError as error:
            if not is_retriable(error):
                self._fail(error)
            pause_s = self._cluster.settings.backoff.initial_seconds
        await asyncio.sleep(pause_s)
        self._updating = False
        self._pump()

    def _all_have_leaders(self) -> bool:
        return all(self._leaders.leader(partition) is not None for partition in self._busy)

    async def _add_partitions(self, partitions: set[TopicPartition]) -> None:
        try:
            await self._producer.add_partitions(partitions)
        except KafkaError as error:
            self._fail(error)
        self._adding = False
        self._pump()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _timed_out(partition: TopicPartition, timeout_s: float, error: KafkaError | None = None) -> KafkaError:
    reason = "its leader could not be reached" if error is None else str(error)
    sentence = (
        f"{partition}: records were not acknowledged within {timeout_s:.0f} s (delivery.timeout.ms): {reason}"
    )
    return KafkaError(ErrorCode.REQUEST_TIMED_OUT, sentence)


def _refusal(partition: TopicPartition, batch: QueuedBatch, answer: PartitionProduceResponse) -> KafkaError:
    code = ErrorCode.of(answer.error_code)
    details = [answer.error_message] if answer.error_message else []
    details += [
        each.batch_index_error_message for each in answer.record_errors[:1] if each.batch_index_error_message
    ]
    if code in _TOO_LARGE:
        details = [
            f"a record of about {batch.size} bytes is larger than the topic allows: raise max.message.bytes "
            "of the topic (message.max.bytes of the broker), compress, or send smaller records"
        ]
    error = about(str(partition), error_of(code), "; ".join(details))
    return error if isinstance(error, ProducerFenced) else RecordsRefused(partition, error)
