"""Calls to other brokers, batched: while one request is in flight, the next one collects calls.

Calls in one lane to one broker share requests, one at a time. Two calls with the same identity are never in
the same request. If a request fails, all its calls fail; the caller looks up the broker again and retries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.metadata.image import MetadataImage
from moldau.protocol.schema import Message
from moldau.server.brokers.peers import BrokerPeers

Q = TypeVar("Q")
A = TypeVar("A")

_Lane = tuple[int, Hashable]
_Batch = list[tuple[Q, asyncio.Future[A]]]

#: The error of calls that are pending when the node stops.
_STOPPED = KafkaError(ErrorCode.NETWORK_EXCEPTION, "the node stopped before the request was answered")


class BatchedCalls(Generic[Q, A]):
    def __init__(
        self,
        peers: BrokerPeers,
        *,
        pack: Callable[[Sequence[Q]], Message],
        unpack: Callable[[Sequence[Q], Any], Sequence[A]],
        identity: Callable[[Q], Hashable],
    ) -> None:
        """`unpack` returns the results of the calls of a response, in their order."""
        self._peers = peers
        self._pack = pack
        self._unpack = unpack
        self._identity = identity
        self._waiting: dict[_Lane, _Batch[Q, A]] = {}
        self._senders: dict[_Lane, asyncio.Task[None]] = {}

    async def ask(self, broker_id: int, question: Q, lane: Hashable = None) -> A:
        """Return the result of a call; raise KafkaError if the broker cannot be reached."""
        key = (broker_id, lane)
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append((question, answer))
        if key not in self._senders:
            self._senders[key] = asyncio.create_task(self._send_all(key))
        return await answer

    def apply(self, image: MetadataImage) -> None:
        self._peers.apply(image)

    async def close(self) -> None:
        senders = list(self._senders.values())
        for task in senders:
            task.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
        self._peers.close()

    async def _send_all(self, key: _Lane) -> None:
        try:
            while batch := self._next_batch(key):
                await self._send(key[0], batch)
        finally:
            del self._senders[key]
            _fail_all(self._waiting.pop(key, ()), _STOPPED)

    def _next_batch(self, key: _Lane) -> _Batch[Q, A]:
        batch: dict[Hashable, tuple[Q, asyncio.Future[A]]] = {}
        later = []
        for question, answer in self._waiting.pop(key, ()):
            each = (question, answer)
            if not answer.done() and batch.setdefault(self._identity(question), each) is not each:
                later.append(each)
        if later:
            self._waiting[key] = later
        return list(batch.values())

    async def _send(self, broker_id: int, batch: _Batch[Q, A]) -> None:
        questions = [question for question, _ in batch]
        try:
            response = await self._peers.call(broker_id, self._pack(questions))
            for (_, answer), found in zip(batch, self._unpack(questions, response), strict=True):
                if not answer.done():
                    answer.set_result(found)
        except KafkaError as error:
            _fail_all(batch, error)
        finally:
            _fail_all(batch, _STOPPED)


def missing(what: object) -> KafkaError:
    """Return the error of a response that lacks the result of a call."""
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the response of a broker lacks the result for {what}")


def _fail_all(batch: Sequence[tuple[Any, asyncio.Future[Any]]], error: KafkaError) -> None:
    for _, answer in batch:
        if not answer.done():
            answer.set_exception(KafkaError(error.code, error.message))
