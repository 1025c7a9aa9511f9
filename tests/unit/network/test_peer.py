"""Connections to other nodes over real sockets."""

from __future__ import annotations

import asyncio
import socket

import pytest

from moldau.network.connector import Connector
from moldau.network.failures import ConnectionLost
from moldau.network.peer import Peer, is_reached
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.testing import Cluster
from tests.harness.apache.node import free_port


async def silence(factory: object, host: str, port: int) -> object:
    """A network in which nothing arrives."""
    await asyncio.Event().wait()
    return None


def test_close_cancels_a_pending_connection_attempt() -> None:
    async def scene() -> None:
        peer = Peer("node", 9092, client_id="test", connector=Connector(silence))
        calls = [asyncio.create_task(peer.call(ApiVersionsRequest())) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        peer.close()
        async with asyncio.timeout(5):
            for call in calls:
                with pytest.raises(ConnectionLost):
                    await call

    asyncio.run(scene())


def test_timeout_of_the_caller_is_raised_unchanged() -> None:
    async def scene() -> None:
        peer = Peer("node", 9092, client_id="test", connector=Connector(silence))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await peer.call(ApiVersionsRequest())
        peer.close()

    asyncio.run(scene())


def test_closed_port_is_refused() -> None:
    assert asyncio.run(is_reached("127.0.0.1", free_port())) is False


def test_silent_listener_is_unknown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert asyncio.run(is_reached("127.0.0.1", silent.getsockname()[1], timeout_ms=100)) is None


def test_running_node_is_reached() -> None:
    with Cluster() as cluster:
        assert asyncio.run(is_reached("127.0.0.1", cluster.port)) is True


def test_connection_reset_by_an_exiting_process_is_retried() -> None:
    """Whoever comes while its sockets are closed is thrown out first, and refused then."""

    async def scene() -> bool | None:
        guests: list[asyncio.StreamWriter] = []

        def close_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            guests.append(writer)
            writer.transport.abort()
            server.close()

        server = await asyncio.start_server(close_at_once, "127.0.0.1", 0)
        reached = await is_reached("127.0.0.1", server.sockets[0].getsockname()[1])
        assert len(guests) == 1
        return reached

    assert asyncio.run(scene()) is False
