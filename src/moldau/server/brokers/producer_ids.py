"""Producer ids for the producers of this broker, from blocks that the controller allocates (KIP-730)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.producer_ids import allocate_producer_ids
from moldau.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from moldau.server.controller.calls import FORWARDING
from moldau.server.controller.channel import ControllerChannel


class ProducerIds:
    def __init__(
        self, broker_id: int, broker_epoch: Callable[[], int], controller: ControllerChannel
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._controller = controller
        self._block: deque[int] = deque()
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        """Return a unique id; the rest of a block is lost when the process ends."""
        await self.ensure_block()
        return self.take()

    async def ensure_block(self) -> None:
        """Request a block of ids if none is left; `take` succeeds until the caller awaits something else."""
        async with self._lock:
            if not self._block:
                self._block.extend(await self._allocate())

    def take(self) -> int:
        """Return the next id of the block; if none is left, raise an error that makes the client retry."""
        if not self._block:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "No producer id is available; retry.")
        return self._block.popleft()

    async def _allocate(self) -> range:
        request = AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=self._broker_epoch())
        response = await self._controller.send(FORWARDING, request, allocate_producer_ids)
        return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)
