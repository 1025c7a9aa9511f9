"""One input after the other: what happens when one cannot be done, hangs, or there are too many."""

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
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.quorum.serial_queue import MAX_QUEUED, SerialQueue
from tests.unit.metadata.builders import uid
from tests.unit.quorum.harness import Node, create, run, with_broker

P = ParamSpec("P")
R = TypeVar("R")


class HangingPool(InlinePool):
    """Does nothing any more once it hangs."""

    def __init__(self) -> None:
        self.hangs = False

    async def run(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.hangs:
            await asyncio.get_running_loop().create_future()
        return await super().run(fn, *args, **kwargs)


def test_an_image_that_cannot_be_published_ends_the_quorum_and_says_so(tmp_path: Path) -> None:
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


def test_a_node_whose_disk_hangs_can_be_stopped(tmp_path: Path) -> None:
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


def test_what_waits_for_its_turn_is_bounded() -> None:
    async def test() -> None:
        failures: list[Exception] = []
        actor = SerialQueue(failures.append)
        actor.start()
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def wait() -> None:
            await gate

        waiting = [asyncio.ensure_future(actor.run(wait)) for _ in range(MAX_QUEUED + 2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        turned_away = [each for each in waiting if each.done()]
        assert {type(each.exception()) for each in turned_away} == {KafkaError}
        gate.set_result(None)
        await asyncio.gather(*(each for each in waiting if each not in turned_away))
        await actor.run(wait)
        await actor.close()
        assert not failures

    run(test)


def test_a_change_of_voters_gets_its_own_answer(tmp_path: Path) -> None:
    """The one before it has taken too long, and nobody has noticed yet."""
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
        quorum._open_connection = silent  # type: ignore[assignment]
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
