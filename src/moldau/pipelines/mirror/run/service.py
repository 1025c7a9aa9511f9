"""A mirror as a service: all flows of a configuration, until it is stopped.

The copy tasks run where their host puts them: on this event loop, or on Spark. The rest of each flow, and
heartbeats, run on this event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from moldau.base.clock import Clock
from moldau.pipelines.mirror.config.flow import Flow
from moldau.pipelines.mirror.config.properties import MirrorConfig
from moldau.pipelines.mirror.copy.task import CopyTask
from moldau.pipelines.mirror.flows.coordinator import FlowCoordinator
from moldau.pipelines.mirror.flows.heartbeats import Heartbeats
from moldau.pipelines.mirror.flows.periodic import repeat_until_done


class TaskHost(Protocol):
    """Runs the copy tasks of a flow until cancelled."""

    async def copy(self, flow: Flow) -> None: ...

    def close(self) -> None: ...


class LocalHost:
    """One copy task per flow, on the event loop of the service."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def copy(self, flow: Flow) -> None:
        await CopyTask(flow, 0, 1, self._clock).run()

    def close(self) -> None:
        """There is nothing to release."""


class MirrorService:
    def __init__(self, config: MirrorConfig, host: TaskHost, clock: Clock) -> None:
        self._config = config
        self._host = host
        self._clock = clock

    async def run(self, on_ready: Callable[[str], None]) -> None:
        """Mirror until cancelled; `on_ready` gets the name of each flow whose copy begins."""
        async with asyncio.TaskGroup() as group:
            for flow in self._config.flows:
                group.create_task(self._mirror(flow, on_ready))
            for pair in self._config.heartbeats:
                group.create_task(Heartbeats(pair, self._clock).run())

    async def _mirror(self, flow: Flow, on_ready: Callable[[str], None]) -> None:
        coordinator = FlowCoordinator(flow, self._clock)
        await repeat_until_done(f"{flow}: creating internal topics", coordinator.prepare)
        on_ready(str(flow))
        async with asyncio.TaskGroup() as group:
            group.create_task(coordinator.run())
            group.create_task(self._host.copy(flow))
