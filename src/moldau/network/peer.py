"""The connection that one component of a node keeps to another node: opened on demand, reopened after it
broke.

Each purpose has a peer of its own (a fetcher, calls to the controller, the quorum), because responses
arrive in the order of the requests: a long poll must not delay a vote. `is_refused` distinguishes an exited
process from a slow network: only for the former the connection is refused.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.network.client import REQUEST_TIMEOUT_MS, ByteCounter, NodeConnection
from moldau.network.connector import PLAINTEXT, Connector
from moldau.network.failures import ConnectionLost, NodeUnreachable, PermanentFailure
from moldau.protocol.schema import Message

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.01


class Peer:
    """`on_lost` is called when an established connection ends other than by `close`."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str | None,
        connect_timeout_ms: int = 10_000,
        connector: Connector = PLAINTEXT,
        on_lost: Callable[[], None] | None = None,
        counter: ByteCounter | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self._client_id = client_id
        self._connect_timeout_ms = connect_timeout_ms
        self._connector = connector
        self._on_lost = on_lost
        self._counter = counter
        self._connection: NodeConnection | None = None
        self._connecting = asyncio.Lock()
        self._attempt: asyncio.Future[NodeConnection] | None = None
        self._closed = False
        #: The last failure that was logged.
        self._reported = ""

    @property
    def connected(self) -> bool:
        return self._connection is not None and not self._connection.closed

    async def connection(self) -> NodeConnection:
        """Return an open connection; `KafkaError` with the reason if there is none."""
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
        """Open a connection; `close` cancels the attempt."""
        self._attempt = asyncio.ensure_future(
            NodeConnection.connect(
                self.host,
                self.port,
                client_id=self._client_id,
                timeout_ms=self._connect_timeout_ms,
                connector=self._connector,
                counter=self._counter,
            )
        )
        try:
            return await self._attempt
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._closed or (task is not None and task.cancelling()):
                raise
            raise ConnectionLost(f"the connection to {self.host}:{self.port} was closed") from None
        except KafkaError as error:
            self._report(error)
            raise
        finally:
            self._attempt = None

    def _report(self, error: KafkaError) -> None:
        """Log a failure that only an operator can remedy, once until the reason changes."""
        permanent = isinstance(error, PermanentFailure) or error.code is ErrorCode.SASL_AUTHENTICATION_FAILED
        if permanent and str(error) != self._reported:
            self._reported = str(error)
            logger.warning("this node cannot connect to another one: %s", error)

    async def call(self, request: Message, *, timeout_ms: int = REQUEST_TIMEOUT_MS) -> Any:
        """Send a request in the newest version that both sides support, and return the response."""
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
    host: str, port: int, *, timeout_ms: int = 1000, connector: Connector = PLAINTEXT
) -> bool:
    """Return whether the connection is refused; False if there is no response at all."""
    return await is_reached(host, port, timeout_ms=timeout_ms, connector=connector) is False


async def is_reached(
    host: str, port: int, *, timeout_ms: int = 1000, connector: Connector = PLAINTEXT
) -> bool | None:
    """Return whether a node responds: False if the connection is refused, None without a response.

    A killed process closes its sockets one after the other. A connection that is accepted and reset at once
    is therefore retried, and refused shortly after.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    while True:
        left_ms = max(1, int((deadline - loop.time()) * 1000))
        try:
            connection = await NodeConnection.connect(host, port, timeout_ms=left_ms, connector=connector)
        except NodeUnreachable as error:
            if error.refused:
                return False
            if not isinstance(error.__cause__, ConnectionError):
                return None
        except ConnectionLost:
            pass
        except KafkaError as error:
            # A node that refuses the versions or the login responds.
            return None if error.code is ErrorCode.NETWORK_EXCEPTION else True
        else:
            connection.close()
            return True
        if loop.time() >= deadline:
            return None
        await asyncio.sleep(_RETRY_SECONDS)
