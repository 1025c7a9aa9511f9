"""A peer that is closed while it connects keeps nobody waiting."""

from __future__ import annotations

import asyncio

import pytest

from moldau.network.failures import ConnectionLost
from moldau.network.peer import Peer
from moldau.protocol.messages.api_versions import ApiVersionsRequest


async def silence(factory: object, host: str, port: int) -> object:
    """A network in which nothing arrives."""
    await asyncio.Event().wait()
    return None


def test_closing_ends_an_attempt_that_hangs() -> None:
    async def scene() -> None:
        peer = Peer("node", 9092, client_id="test", open_connection=silence)
        calls = [asyncio.create_task(peer.call(ApiVersionsRequest())) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        peer.close()
        async with asyncio.timeout(5):
            for call in calls:
                with pytest.raises(ConnectionLost):
                    await call

    asyncio.run(scene())


def test_who_gives_up_waiting_is_cancelled_as_always() -> None:
    async def scene() -> None:
        peer = Peer("node", 9092, client_id="test", open_connection=silence)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await peer.call(ApiVersionsRequest())
        peer.close()

    asyncio.run(scene())
