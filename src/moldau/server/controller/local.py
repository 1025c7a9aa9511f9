"""The controller of this process: decides requests while it is the active controller.

A node without the controller role and an inactive controller answer NOT_CONTROLLER.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.brokers.lifecycle import fence_broker
from moldau.controller.controller import Controller, Decide
from moldau.controller.state import DecisionContext
from moldau.metadata.records import MetadataRecord
from moldau.protocol.schema import Message
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.statemachine.decision import Decision

Q = TypeVar("Q", bound=Message)
R = TypeVar("R")


class LocalController:
    def __init__(self, quorum: MetadataQuorum, controller: Controller | None, clock: Clock) -> None:
        """`controller` is None on a node without the controller role."""
        self._quorum = quorum
        self._controller = controller
        self._clock = clock

    @property
    def timed_out_heartbeats(self) -> int:
        """How many brokers this controller has fenced because they were silent, since the start."""
        return 0 if self._controller is None else self._controller.state.heartbeats.timed_out

    async def decide(
        self,
        api_version: int,
        request: Q,
        decide: Decide[Q, R],
        charge: Callable[[int, int], None] | None = None,
    ) -> R:
        """Decide a request; return its response once the decision is committed."""

        def run(controller: Controller) -> Decision[MetadataRecord, R]:
            context = DecisionContext(api_version, self._now_ms(), self._clock.time_ms(), charge)
            return controller.decide(decide, request, context)

        return await self._write(run)

    async def run_periodic_task(self) -> bool:
        """Run one step of the controller's periodic tasks; return whether another may be due now."""
        return await self._write(
            lambda controller: controller.run_periodic_task(self._now_ms(), self._clock.time_ms())
        )

    async def fence_broker(self, broker_id: int, broker_epoch: int) -> None:
        """Fence a broker whose process has ended, before its session expires."""
        await self._write(lambda controller: fence_broker(controller.state, broker_id, broker_epoch))

    async def _write(self, decide: Callable[[Controller], Decision[MetadataRecord, R]]) -> R:
        controller = self._controller
        if controller is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This node is not a controller.")
        return await self._quorum.write(lambda: decide(controller))

    def _now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)
