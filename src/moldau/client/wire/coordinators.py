"""Find the coordinator of a group or transactional id, and send requests to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from moldau.base.errors import KafkaError
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check, error_of
from moldau.network.client import NodeConnection
from moldau.protocol.apis import APIS
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from moldau.protocol.schema import Message

GROUP, TRANSACTION = 0, 1
#: Since this version, FindCoordinator takes several keys.
_BATCHED_SINCE = 4

R = TypeVar("R")


async def ask_coordinator(
    cluster: Cluster,
    key_type: int,
    name: str,
    request: Message,
    read: Callable[[Any], R],
    *,
    newest: int | None = None,
) -> R:
    """Send a request to the coordinator of `name` and pass the response to `read`, which raises its error.

    Retriable errors are retried, because coordinators move. `newest` is the newest version to be used.
    """

    async def attempt() -> R:
        connection = await _coordinator(cluster, key_type, name)
        return read(await ask(cluster, connection, request, newest))

    return await cluster.retry(attempt)


async def ask(
    cluster: Cluster, connection: NodeConnection, request: Message, newest: int | None = None
) -> Any:
    """Send a request in the newest version that both sides support, but at most in `newest`."""
    version = connection.version_for(APIS[request.API_KEY])
    if version is not None and newest is not None:
        version = min(version, newest)
    return await connection.call(request, version, timeout_ms=cluster.settings.request_timeout_ms)


async def each_of(names: list[str], ask_one: Callable[[str], Awaitable[R]]) -> dict[str, R | KafkaError]:
    """Return a result or an error for every name."""
    results: dict[str, R | KafkaError] = {}
    for name in names:
        try:
            results[name] = await ask_one(name)
        except KafkaError as error:
            results[name] = error
    return results


async def coordinator_id(cluster: Cluster, key_type: int, name: str) -> int:
    """Return the broker id of the coordinator."""
    connection = await cluster.any_connection()
    request = FindCoordinatorRequest(key=name, key_type=key_type, coordinator_keys=[name])
    version = connection.version_for(APIS[request.API_KEY])
    if version is not None and version < _BATCHED_SINCE:
        request.coordinator_keys = []
    else:
        request.key = ""
    answer: FindCoordinatorResponse = await ask(cluster, connection, request)
    for found in answer.coordinators:
        if found.error_code:
            raise error_of(found.error_code, found.error_message)
        return found.node_id
    check(answer.error_code, answer.error_message)
    return answer.node_id


async def _coordinator(cluster: Cluster, key_type: int, name: str) -> NodeConnection:
    return await cluster.node_connection(await coordinator_id(cluster, key_type, name))
