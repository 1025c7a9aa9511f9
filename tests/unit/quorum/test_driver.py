"""Inputs of the driver that fail, hang or expire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import InlinePool
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.network.connector import Connector
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from moldau.quorum.metadata_quorum import MetadataQuorum
from tests.unit.metadata.builders import uid
from tests.unit.quorum.harness import Node, create, run, with_broker

P = ParamSpec("P")
R = TypeVar("R")


class HangingPool(InlinePool):
    """A pool that never finishes once `hangs` is set."""

    def __init__(self) -> None:
        self.hangs = False

    async def run(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.hangs:
            await asyncio.get_running_loop().create_future()
        return await super().run(fn, *args, **kwargs)


def test_error_of_an_image_listener_stops_the_quorum(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.format()

    async def test() -> None:
        async with node.running() as quorum:
            await with_broker(quorum)

            def refuse(delta: MetadataDelta, image: MetadataImage) -> None:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "not this one")

            quorum.add_listener(refuse)
            with pytest.raises(KafkaError, match="not this one"):
                await asyncio.wait_for(create(quorum, "topic"), 5)
            assert len(node.failures) == 1
            assert not quorum.is_active

    run(test)


def test_close_does_not_wait_for_a_hanging_disk(tmp_path: Path) -> None:
    node = Node(tmp_path, request_timeout_ms=50)
    node.format()

    async def test() -> None:
        pool = HangingPool()
        quorum = node.make(pool)
        await quorum.start()
        await with_broker(quorum)
        pool.hangs = True
        writing = asyncio.ensure_future(create(quorum, "topic"))
        await asyncio.sleep(0)
        await asyncio.wait_for(quorum.close(), 10)
        with pytest.raises(KafkaError):
            await writing

    run(test)


def test_voter_change_does_not_get_the_response_of_an_expired_one(tmp_path: Path) -> None:
    """The change before it has expired, and the timer has not fired yet."""
    node = Node(tmp_path)
    node.format()

    async def silent(*arguments: object) -> object:
        return await asyncio.get_running_loop().create_future()

    def add(quorum: MetadataQuorum, node_id: int) -> asyncio.Future[object]:
        request = AddRaftVoterRequest(
            voter_id=node_id,
            voter_directory_id=uid(node_id),
            listeners=[Listener(name="CONTROLLER", host="localhost", port=node_id)],
        )
        return asyncio.ensure_future(quorum.handle(request, 1))

    async def test() -> None:
        quorum = node.make()
        quorum._connector = Connector(silent)  # type: ignore[arg-type]
        await quorum.start()
        first = add(quorum, 2)
        await asyncio.sleep(0.01)
        assert not first.done()
        node.clock.advance(10_000)
        second = add(quorum, 3)
        answer = await asyncio.wait_for(first, 5)
        assert isinstance(answer, AddRaftVoterResponse)
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert not second.done()
        await quorum.close()
        second.cancel()

    run(test)
