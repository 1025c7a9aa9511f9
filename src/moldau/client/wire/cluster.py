"""The client's view of a cluster: its nodes, one connection to each, and the routing of requests.

How it works. The first request goes to a bootstrap address; its response contains all nodes and the
controller. Later requests go to any node, to the controller, to a node by id or to the leaders of
partitions. `retry` repeats an attempt while its error is retriable.

Invariants:

- One connection per address, opened on demand and replaced after it broke.
- Retriable errors are retried for `api_timeout_ms`. An unreachable node is retried only for
  `bootstrap_timeout_ms` if no other node is known; one of several nodes is replaced by the others within
  seconds. Permanent errors (an unknown host, another protocol on the port) are not retried, and a refused
  login or certificate is not tried at other nodes, as in Java's clients.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.wire.errors import check, error_of
from moldau.client.wire.settings import Address, ClientSettings
from moldau.network.client import NodeConnection
from moldau.network.failures import (
    ConnectionLost,
    LoginFailed,
    NodeUnreachable,
    PermanentFailure,
    TlsFailed,
)
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from moldau.protocol.schema import Message

R = TypeVar("R")
T = TypeVar("T")

CONTROLLER_ENDPOINTS = 2
#: CONCURRENT_TRANSACTIONS lasts only until the previous transaction is completed.
_CONCURRENT_SECONDS = 0.02
_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Node(NamedTuple):
    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


class BootstrapFailed(NodeUnreachable):
    """No bootstrap address could be reached; `failures` has the reason for each."""

    def __init__(self, failures: list[tuple[Address, KafkaError]]) -> None:
        address, first = failures[0]
        super().__init__(address.host, address.port, str(first), passing=any(map(_is_passing, failures)))
        self.failures = failures
        self.args = ("; ".join(str(failure) for _, failure in failures),)


def is_retriable(error: KafkaError) -> bool:
    """Return whether a retry may succeed; an unreachable node may be restarted."""
    if isinstance(error, NodeUnreachable):
        return error.passing
    if error.code is ErrorCode.BROKER_NOT_AVAILABLE:
        return True
    return error.code.retriable and not isinstance(error, PermanentFailure)


def _is_passing(failure: tuple[Address, KafkaError]) -> bool:
    error = failure[1]
    return isinstance(error, ConnectionLost) or (isinstance(error, NodeUnreachable) and error.passing)


class Cluster:
    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self._connector = settings.security.connector()
        self.nodes: dict[int, Node] = {}
        self.controller_id = -1
        self.cluster_id: str | None = None
        self._connections: dict[Address, NodeConnection] = {}
        self._opening: dict[Address, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def ask_any(self, request: Message) -> Any:
        """Send a request to any node."""
        return await self._ask(await self.any_connection(), request)

    async def ask_controller(self, request: Message) -> Any:
        """Send a request to the controller, or to the broker that forwards to it."""
        if self.controller_id not in self.nodes:
            await self.refresh()
        if self.controller_id not in self.nodes:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the cluster has no active controller")
        return await self.ask_node(self.controller_id, request)

    async def ask_node(self, node_id: int, request: Message) -> Any:
        return await self._ask(await self.node_connection(node_id), request)

    async def node_connection(self, node_id: int) -> NodeConnection:
        if node_id not in self.nodes:
            await self.refresh()
        node = self.nodes.get(node_id)
        if node is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"the cluster has no node {node_id}")
        return await self._connection(node.address)

    async def any_connection(self) -> NodeConnection:
        for connection in self._connections.values():
            if not connection.closed:
                return connection
        failures: list[tuple[Address, KafkaError]] = []
        for address in dict.fromkeys([*self.settings.bootstrap, *(n.address for n in self.nodes.values())]):
            try:
                return await self._connection(address)
            except (LoginFailed, TlsFailed):
                raise
            except KafkaError as error:
                failures.append((address, error))
        raise BootstrapFailed(failures)

    async def refresh(self) -> None:
        """Update the nodes and the controller."""
        if not self.settings.controllers:
            await self.metadata([])
            return
        request = DescribeClusterRequest(endpoint_type=CONTROLLER_ENDPOINTS)
        described: DescribeClusterResponse = await self.ask_any(request)
        check(described.error_code, described.error_message)
        self.nodes = {n.broker_id: Node(n.broker_id, n.host, n.port, n.rack) for n in described.brokers}
        self.controller_id, self.cluster_id = described.controller_id, described.cluster_id

    async def metadata(self, topics: Iterable[str] | None, *, create: bool = False) -> MetadataResponse:
        """Request the metadata of these topics, or of all (None); update the nodes from it.

        `create`: let the broker create missing topics (`auto.create.topics.enable`).
        """
        names = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=names, allow_auto_topic_creation=create)
        answer: MetadataResponse = await self.ask_any(request)
        check(answer.error_code)
        self.nodes = {n.node_id: Node(n.node_id, n.host, n.port, n.rack) for n in answer.brokers}
        self.controller_id, self.cluster_id = answer.controller_id, answer.cluster_id
        return answer

    async def retry(self, attempt: Callable[[], Awaitable[R]], *, timeout_ms: int | None = None) -> R:
        """Run `attempt` until it succeeds, its error is not retriable, or the time is up.

        `timeout_ms` also applies to unreachable nodes once the cluster was reached.
        """
        now = asyncio.get_running_loop().time
        begin, failures = now(), 0
        while True:
            try:
                return await attempt()
            except KafkaError as error:
                failures += 1
                delay = self.settings.backoff.seconds(failures)
                if error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
                    delay = min(delay, _CONCURRENT_SECONDS)
                if (now() - begin + delay) * 1000 > self._retry_limit_ms(error, timeout_ms):
                    raise
                self.controller_id = -1
            await asyncio.sleep(delay)

    async def ask_leaders(
        self,
        wanted: Mapping[TopicPartition, T],
        ask: Callable[[int, dict[TopicPartition, T]], Awaitable[dict[TopicPartition, R | KafkaError]]],
    ) -> dict[TopicPartition, R | KafkaError]:
        """Call `ask` for the leader of each partition, and retry; every partition gets an entry."""
        results: dict[TopicPartition, R | KafkaError] = {}

        async def attempt() -> None:
            missing = {
                partition: value for partition, value in wanted.items() if _unanswered(results.get(partition))
            }
            by_leader, errors = self._group(missing, await self.metadata({p.topic for p in missing}))
            results.update(errors)
            failures: list[KafkaError] = []
            asked = (_one_leader(ask, *each, failures) for each in by_leader.items())
            for answers in await asyncio.gather(*asked):
                results.update(answers)
            if failures:
                raise failures[0]
            for result in results.values():
                if isinstance(result, KafkaError) and is_retriable(result):
                    raise _Retriable(result.code, result.message)

        if wanted:
            try:
                await self.retry(attempt)
            except _Retriable:
                return results
        return results

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _retry_limit_ms(self, error: KafkaError, timeout_ms: int | None) -> int:
        if timeout_ms is not None and self.nodes and error.code is not _UNKNOWN:
            return timeout_ms if is_retriable(error) else 0
        if not is_retriable(error) or error.code is ErrorCode.BROKER_NOT_AVAILABLE:
            return 0
        return (
            self.settings.bootstrap_timeout_ms if self._reported_soon(error) else self.settings.api_timeout_ms
        )

    def _reported_soon(self, error: KafkaError) -> bool:
        """Return whether an error is reported soon: no node, or no topic, has ever been there."""
        if isinstance(error, BootstrapFailed) or error.code is _UNKNOWN:
            return True
        unanswered = isinstance(error, ConnectionLost) and error.unanswered
        return len(self.nodes) < 2 and (unanswered or isinstance(error, NodeUnreachable))

    async def _ask(self, connection: NodeConnection, request: Message) -> Any:
        return await connection.call(request, timeout_ms=self.settings.request_timeout_ms)

    async def _connection(self, address: Address) -> NodeConnection:
        async with self._opening[address]:
            known = self._connections.get(address)
            if known is not None and not known.closed:
                return known
            opened = await NodeConnection.connect(
                *address, client_id=self.settings.client_id, connector=self._connector
            )
            self._connections[address] = opened
            return opened

    def _group(
        self, wanted: Mapping[TopicPartition, T], metadata: MetadataResponse
    ) -> tuple[dict[int, dict[TopicPartition, T]], dict[TopicPartition, KafkaError]]:
        leaders: dict[TopicPartition, int] = {}
        topic_errors: dict[str, ErrorCode] = {}
        for topic in metadata.topics:
            topic_errors[topic.name or ""] = ErrorCode(topic.error_code)
            for partition in topic.partitions:
                leaders[TopicPartition(topic.name or "", partition.partition_index)] = partition.leader_id
        by_leader: dict[int, dict[TopicPartition, T]] = defaultdict(dict)
        errors: dict[TopicPartition, KafkaError] = {}
        for wanted_partition, value in wanted.items():
            leader = leaders.get(wanted_partition, -1)
            if leader >= 0:
                by_leader[leader][wanted_partition] = value
            else:
                errors[wanted_partition] = _no_leader(wanted_partition, leaders, topic_errors)
        return by_leader, errors


class _Retriable(KafkaError):
    """Some partitions still have a retriable error."""


async def _one_leader(
    ask: Callable[[int, dict[TopicPartition, T]], Awaitable[dict[TopicPartition, R | KafkaError]]],
    node: int,
    group: dict[TopicPartition, T],
    failures: list[KafkaError],
) -> dict[TopicPartition, R | KafkaError]:
    """Return the results of one leader; an unreachable leader does not delay the others."""
    try:
        return await ask(node, group)
    except KafkaError as error:
        failures.append(error)
        return dict.fromkeys(group, error)


def _no_leader(
    partition: TopicPartition, leaders: Mapping[TopicPartition, int], topic_errors: Mapping[str, ErrorCode]
) -> KafkaError:
    if partition in leaders:
        return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader")
    code = topic_errors.get(partition.topic, ErrorCode.NONE)
    if code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{partition} does not exist")
    return error_of(code)


def _unanswered(result: object) -> bool:
    return result is None or (isinstance(result, KafkaError) and result.code.retriable)
