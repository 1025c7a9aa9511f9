"""Telling a process that is gone from one that is slow, over real sockets."""

from __future__ import annotations

import asyncio
import socket

from moldau.network.peer import is_reached
from moldau.testing import Cluster
from tests.harness.apache.node import free_port


def test_nobody_listens() -> None:
    assert asyncio.run(is_reached("127.0.0.1", free_port())) is False


def test_somebody_listens_and_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert asyncio.run(is_reached("127.0.0.1", silent.getsockname()[1], timeout_ms=100)) is None


def test_a_node_answers() -> None:
    with Cluster() as cluster:
        assert asyncio.run(is_reached("127.0.0.1", cluster.port)) is True


def test_a_process_that_is_just_ending_lets_in_once_more() -> None:
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
