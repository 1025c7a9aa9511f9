"""Requests in batches: a limited number in flight, and a failure that concerns only its own batch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, TypeVar

from moldau.base.errors import KafkaError

K = TypeVar("K")
R = TypeVar("R")

_MAX_IN_FLIGHT: Final = 8
#: Groups in one request: their offsets and members fit into a response of a few megabytes.
MAX_GROUPS: Final = 100
MAX_PARTITIONS: Final = 2000


class Batches:
    """Sends the requests of a round."""

    def __init__(self) -> None:
        self._in_flight = asyncio.Semaphore(_MAX_IN_FLIGHT)

    async def send(
        self,
        by_node: dict[int, list[K]],
        most: int,
        ask: Callable[[int, Sequence[K]], Awaitable[dict[K, R | KafkaError]]],
    ) -> dict[K, R | KafkaError]:
        """Call `ask` with up to `most` keys of a node at a time; every key that was sent gets an entry."""
        results: dict[K, R | KafkaError] = {}

        async def one(node: int, keys: Sequence[K]) -> None:
            async with self._in_flight:
                try:
                    answers = await ask(node, keys)
                except KafkaError as error:
                    results.update(dict.fromkeys(keys, error))
                else:
                    results.update(answers)

        await asyncio.gather(
            *(one(node, part) for node, keys in by_node.items() for part in _parts(keys, most))
        )
        return results


def _parts(keys: Sequence[K], most: int) -> Iterator[Sequence[K]]:
    for begin in range(0, len(keys), most):
        yield keys[begin : begin + most]
