"""A mirror as a service: all flows of a configuration, until it is stopped.

The copy tasks run where their host puts them: on this event loop, or on Spark. The rest of each flow, and
heartbeats, run on this event loop. Of several processes, one mirrors a flow, and the others stand by.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from moldau.base.clock import Clock
from moldau.pipelines.mirror.config.flow import Flow
from moldau.pipelines.mirror.config.properties import MirrorConfig
from moldau.pipelines.mirror.copy.task import CopyTask
from moldau.pipelines.mirror.flows.coordinator import FlowCoordinator
from moldau.pipelines.mirror.flows.heartbeats import Heartbeats
from moldau.pipelines.mirror.flows.periodic import repeat_until_done
from moldau.pipelines.mirror.run.election import Election

#: Gets the name of a flow, and whether this process mirrors it now or stands by.
OnState = Callable[[str, bool], None]


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

    async def run(self, on_state: OnState) -> None:
        """Mirror until cancelled."""
        async with asyncio.TaskGroup() as group:
            for flow in self._config.flows:
                group.create_task(self._take_part(flow, on_state))
            mirrored = {str(flow) for flow in self._config.flows}
            for pair in self._config.heartbeats:
                if str(pair) not in mirrored:
                    group.create_task(Heartbeats(pair, self._clock).run())

    async def _take_part(self, flow: Flow, on_state: OnState) -> None:
        """Mirror a flow while this process is the active one."""
        election = Election(flow)
        async with asyncio.TaskGroup() as group:
            group.create_task(election.run())
            group.create_task(self._follow(election, flow, on_state))

    async def _follow(self, election: Election, flow: Flow, on_state: OnState) -> None:
        while True:
            if not await election.decided():
                on_state(str(flow), False)
            await election.wait_for(active=True)
            await self._until(election, self._mirror(flow, on_state))

    async def _until(self, election: Election, work: Coroutine[Any, Any, None]) -> None:
        """Do the work until the group names another process."""
        working = asyncio.create_task(work)
        deposed = asyncio.create_task(election.wait_for(active=False))
        try:
            await asyncio.wait([working, deposed], return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            deposed.cancel()
            working.cancel()
            await asyncio.wait([working])

    async def _mirror(self, flow: Flow, on_state: OnState) -> None:
        coordinator = FlowCoordinator(flow, self._clock)
        try:
            await repeat_until_done(f"{flow}: creating internal topics", coordinator.prepare)
            on_state(str(flow), True)
            async with asyncio.TaskGroup() as group:
                group.create_task(coordinator.run())
                group.create_task(self._host.copy(flow))
                if flow["emit.heartbeats.enabled"]:
                    group.create_task(Heartbeats(flow, self._clock).run())
        finally:
            coordinator.close()
