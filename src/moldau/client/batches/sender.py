"""Sending what waits in the queues of partitions to their leaders, until the leaders have it.

How it works. `_pump` runs whenever something may have changed: it takes the first batch of every partition
that has none under way, puts those of one leader into a request, and starts it. An answer, or its absence,
decides for each batch: stored, to be sent again, to be split, or lost. The first batch that is lost ends the
work: what waits is dropped and everyone who waits hears why.

Invariants: everything runs on one loop; `_pump` never waits; the bytes that wait or are under way are
counted, and whoever brings more waits for room."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterable
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.batches.leaders import Leaders
from moldau.client.batches.queues import PartitionQueue, QueuedBatch
from moldau.client.batches.transactions import ProducerState
from moldau.client.wire.cluster import Cluster, may_pass
from moldau.client.wire.errors import about, error_of
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
#: The newest version that belongs to transactions in which partitions are announced.
_ANNOUNCED = 11
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
    ) -> None:
        #: Why nothing is sent any more.
        self.failure: KafkaError | None = None
        self.records_stored = 0
        self._cluster = cluster
        self._producer = producer
        self._leaders = leaders
        self._delivery_timeout_s = delivery_timeout_ms / 1000
        self._max_request_bytes = max_request_bytes
        self._max_pending_bytes = max_pending_bytes
        self._requests_per_node = requests_per_node
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._busy: dict[TopicPartition, PartitionQueue] = {}
        self._requests: dict[int, int] = defaultdict(int)
        self._pending_bytes = 0
        self._progress = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._learning = self._announcing = False

    async def accept(self, batches: Iterable[tuple[TopicPartition, bytearray | memoryview]]) -> None:
        """Take batches over, waiting for room; each becomes the sender's to write into."""
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
        """Wait until everything is stored."""
        await self._until(lambda: not self._busy)

    async def drop(self) -> bool:
        """Forget what waits and await what is under way; True if the fate of something stays unknown."""
        uncertain = self.failure is not None or any(queue.uncertain for queue in self._busy.values())
        self._drop_waiting()
        while self._tasks:
            await asyncio.wait(self._tasks)
            self._drop_waiting()
        self.failure = None
        return uncertain

    def begin_anew(self) -> None:
        """Another producer id or epoch: all sequences begin with 0."""
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
        unled, unannounced = set(), set()
        for partition, queue in self._busy.items():
            if not queue.sendable or queue.not_before > now:
                continue
            if queue.waiting[0].deadline < now:
                self._lose(_too_late(partition, self._delivery_timeout_s))
                return
            leader = self._leaders.leader(partition)
            if leader is None:
                unled.add(partition.topic)
            elif self._producer.unannounced(partition):
                unannounced.add(partition)
            else:
                by_node[leader].append(queue)
        if unled and not self._learning:
            self._learning = True
            self._start(self._learn(unled))
        if unannounced and not self._announcing:
            self._announcing = True
            self._start(self._announce(unannounced))
        for node, queues in by_node.items():
            self._send(node, queues)

    def _send(self, node: int, queues: list[PartitionQueue]) -> None:
        """Requests with what there is for a node, as many as it may have under way."""
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
                    self._answered(queue, answer)
            missing = KafkaError(ErrorCode.NETWORK_EXCEPTION, f"node {node} left partitions out of an answer")
            for queue in by_partition.values():
                self._try_again(queue, missing)
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
            batch = queue.under_way
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
        return min(newest, _ANNOUNCED)

    def _answered(self, queue: PartitionQueue, answer: PartitionProduceResponse) -> None:
        code = ErrorCode.of(answer.error_code)
        batch = queue.under_way
        if batch is None:
            return
        if code in _STORED:
            queue.acknowledge(answer.base_offset)
            self.records_stored += batch.records
            self._done(queue, batch.size)
        elif code in _TOO_LARGE and batch.records > 1:
            parts = queue.split()
            self._pending_bytes += sum(part.size for part in parts) - batch.size
        elif code in _FORGOTTEN and self._may_begin_anew(queue, answer):
            queue.begin_anew(raise_epoch=not self._producer.in_transaction)
            self._try_again(queue, error_of(code))
        else:
            self._failed(queue, _refusal(queue.partition, batch, answer))

    def _may_begin_anew(self, queue: PartitionQueue, answer: PartitionProduceResponse) -> bool:
        """Whether the broker can only have forgotten us: with transactions, because all we wrote is gone."""
        if not self._producer.in_transaction:
            return True
        gone = queue.acknowledged_offset <= answer.log_start_offset
        return answer.error_code == ErrorCode.UNKNOWN_PRODUCER_ID and gone

    def _failed(self, queue: PartitionQueue, error: KafkaError) -> None:
        if self.failure is None and may_pass(error):
            self._try_again(queue, error)
        else:
            batch, queue.under_way = queue.under_way, None
            self._done(queue, batch.size if batch else 0)
            self._lose(error)

    def _try_again(self, queue: PartitionQueue, error: KafkaError) -> None:
        now = asyncio.get_running_loop().time()
        batch = queue.under_way
        if batch is None:
            return
        if batch.deadline < now:
            queue.under_way = None
            self._done(queue, batch.size)
            self._lose(_too_late(queue.partition, self._delivery_timeout_s, error))
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
        if not queue.waiting and queue.under_way is None:
            self._busy.pop(queue.partition, None)
        self._progress.set()

    def _lose(self, error: KafkaError) -> None:
        if self.failure is None:
            self.failure = error
        self._drop_waiting()

    def _drop_waiting(self) -> None:
        for queue in list(self._busy.values()):
            self._done(queue, queue.drop())
        self._progress.set()

    async def _learn(self, topics: set[str]) -> None:
        """Ask who leads; partitions that still have no leader are asked for again after a pause."""
        try:
            await self._leaders.learn(topics)
            pause_s = 0.0 if self._all_led() else self._cluster.settings.backoff.initial_seconds
        except KafkaError as error:
            if not may_pass(error):
                self._lose(error)
            pause_s = self._cluster.settings.backoff.initial_seconds
        await asyncio.sleep(pause_s)
        self._learning = False
        self._pump()

    def _all_led(self) -> bool:
        return all(self._leaders.leader(partition) is not None for partition in self._busy)

    async def _announce(self, partitions: set[TopicPartition]) -> None:
        try:
            await self._producer.announce(partitions)
        except KafkaError as error:
            self._lose(error)
        self._announcing = False
        self._pump()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _too_late(partition: TopicPartition, timeout_s: float, error: KafkaError | None = None) -> KafkaError:
    reason = "its leader could not be reached" if error is None else str(error)
    sentence = (
        f"{partition}: records were not stored within {timeout_s:.0f} s (delivery.timeout.ms): {reason}"
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
            f"a record of about {batch.size} bytes is larger than the topic takes: raise max.message.bytes "
            "of the topic (message.max.bytes of the broker), compress, or send smaller ones"
        ]
    return about(str(partition), error_of(code), "; ".join(details))
