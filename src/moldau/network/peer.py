"""The connection that one part of a node keeps to another node: opened when it is needed, and again after it
broke.

Every purpose has a peer of its own (a fetcher, the way to the controller, the quorum), because answers come
in the order of the requests: a long poll must not hold up a vote. `is_refused` tells a process that is gone
from a network that is slow: only the first answers that nobody listens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.network.client import REQUEST_TIMEOUT_MS, NodeConnection, OpenConnection
from moldau.network.failures import ConnectionLost, NodeUnreachable
from moldau.protocol.schema import Message

_AGAIN_SECONDS = 0.01


class Peer:
    """`on_lost` is called when a connection that stood has ended, other than by `close`."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str | None,
        connect_timeout_ms: int = 10_000,
        open_connection: OpenConnection | None = None,
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self._client_id = client_id
        self._connect_timeout_ms = connect_timeout_ms
        self._open_connection = open_connection
        self._on_lost = on_lost
        self._connection: NodeConnection | None = None
        self._connecting = asyncio.Lock()
        self._attempt: asyncio.Future[NodeConnection] | None = None
        self._closed = False

    @property
    def connected(self) -> bool:
        return self._connection is not None and not self._connection.closed

    async def connection(self) -> NodeConnection:
        """An open connection; a `KafkaError` says why there is none."""
        async with self._connecting:
            if self._closed:
                raise ConnectionLost(f"the connection to {self.host}:{self.port} was closed")
            if self._connection is None or self._connection.closed:
                connection = await self._connect()
                if self._closed:
                    connection.close()
                    raise ConnectionLost(f"the connection to {self.host}:{self.port} was closed")
                connection.on_end = self._ended
                self._connection = connection
                if connection.closed:
                    self._ended()
            return self._connection

    async def _connect(self) -> NodeConnection:
        """A new connection; `close` ends the attempt, so that nobody waits for a node that is not wanted."""
        self._attempt = asyncio.ensure_future(
            NodeConnection.connect(
                self.host,
                self.port,
                client_id=self._client_id,
                timeout_ms=self._connect_timeout_ms,
                open_connection=self._open_connection,
            )
        )
        try:
            return await self._attempt
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._closed or (task is not None and task.cancelling()):
                raise
            raise ConnectionLost(f"the connection to {self.host}:{self.port} was closed") from None
        finally:
            self._attempt = None

    async def call(self, request: Message, *, timeout_ms: int = REQUEST_TIMEOUT_MS) -> Any:
        """Send a request in the newest version both sides know, and wait for its answer."""
        connection = await self.connection()
        return await connection.call(request, timeout_ms=timeout_ms)

    def close(self) -> None:
        self._closed = True
        if self._attempt is not None:
            self._attempt.cancel()
        if self._connection is not None:
            self._connection.close()

    def _ended(self) -> None:
        if not self._closed and self._on_lost is not None:
            self._on_lost()


async def is_refused(
    host: str, port: int, *, timeout_ms: int = 1000, open_connection: OpenConnection | None = None
) -> bool:
    """Whether nobody listens there any more. Silence is no answer: then, too, this is False."""
    return await is_reached(host, port, timeout_ms=timeout_ms, open_connection=open_connection) is False


async def is_reached(
    host: str, port: int, *, timeout_ms: int = 1000, open_connection: OpenConnection | None = None
) -> bool | None:
    """Whether a node answers there: False when the connection is refused, None when nothing is heard.

    A process that is killed closes its sockets one after the other: whoever was let in and thrown out at once
    tries again, and is refused a moment later.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    while True:
        left_ms = max(1, int((deadline - loop.time()) * 1000))
        try:
            connection = await NodeConnection.connect(
                host, port, timeout_ms=left_ms, open_connection=open_connection
            )
        except NodeUnreachable as error:
            if error.refused:
                return False
            if not isinstance(error.__cause__, ConnectionError):
                return None
        except ConnectionLost:
            pass
        except KafkaError as error:
            if error.code is not ErrorCode.NETWORK_EXCEPTION:
                raise
            return None
        else:
            connection.close()
            return True
        if loop.time() >= deadline:
            return None
        await asyncio.sleep(_AGAIN_SECONDS)
