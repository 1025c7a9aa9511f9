"""`LagMonitor`: observes a cluster in the background and keeps the verdicts of the last round.

    monitor = LagMonitor("localhost:9092")
    await monitor.start()
    monitor.snapshot.groups["billing"].status
    await monitor.close()

One task sends a round of requests per interval. A round that fails leaves the verdicts as they were and sets
`snapshot.error`; the next interval tries again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from moldau.base.clock import Clock, SystemClock
from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.base.json_log import event
from moldau.base.loop_slice import LoopSlice
from moldau.client.admin.client import AsyncAdminClient, Where
from moldau.client.wire.settings import ClientSettings
from moldau.lag.collection.collector import Collector
from moldau.lag.evaluation.evaluator import LagEvaluator
from moldau.lag.evaluation.rules import Commit, Status
from moldau.lag.evaluation.state import LagRules
from moldau.lag.evaluation.verdicts import GroupLag, LagSnapshot
from moldau.lag.filters import ALL_NAMES, NameFilter

logger = logging.getLogger(__name__)

_MIN_TIMEOUT_MS: Final = 5000


class StatusChange(NamedTuple):
    """The status of a group has changed. A group that has disappeared is NOTFOUND, with its last lag."""

    time_ms: int
    cluster_id: str | None
    before: Status
    after: Status
    lag: GroupLag


class LagMonitor:
    """Observes all groups of a cluster, or those that the filters allow."""

    def __init__(
        self,
        where: Where,
        rules: LagRules | None = None,
        *,
        groups: NameFilter = ALL_NAMES,
        topics: NameFilter = ALL_NAMES,
        clock: Clock | None = None,
    ) -> None:
        self.rules = rules or LagRules()
        self.snapshot = LagSnapshot()
        #: Called with every change of a status, in the event loop of the monitor.
        self.on_change: list[Callable[[StatusChange], None]] = []
        # A broker that hangs delays the round of all others, so it is given up soon.
        timeout_ms = max(self.rules.interval_ms, _MIN_TIMEOUT_MS)
        self._client = AsyncAdminClient(where, request_timeout_ms=timeout_ms)
        self._clock = clock or SystemClock()
        self._collector = Collector(self._client.cluster, self._clock, groups, topics)
        self._evaluator = LagEvaluator(self.rules)
        self._task: asyncio.Task[None] | None = None
        self._round_ended = asyncio.Event()
        self._stopped = asyncio.Event()
        self._reason = ""

    @property
    def settings(self) -> ClientSettings:
        return self._client.cluster.settings

    def commits(self, group: str) -> dict[TopicPartition, list[Commit]]:
        """Return the commits of a group in the window."""
        return self._evaluator.commits(group)

    async def start(self) -> None:
        """Observe the cluster once, then in the background; `KafkaError` if it cannot be reached."""
        await self.observe()
        self._task = asyncio.create_task(self._observe_always())
        self._task.add_done_callback(self._ended)

    async def next_round(self) -> LagSnapshot:
        """Wait for the end of the next round in the background, and return its snapshot."""
        await self._round_ended.wait()
        return self.snapshot

    async def failed(self) -> str:
        """Wait until the monitor cannot continue, and return the reason; usually it never returns."""
        await self._stopped.wait()
        return self._reason

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._client.close()

    async def observe(self) -> LagSnapshot:
        """Send one round of requests and judge all groups. One call at a time."""
        self._evaluator.observe(await self._collector.collect())
        groups: dict[str, GroupLag] = {}
        loop_slice = LoopSlice(self._clock)
        for name in self._evaluator.groups:
            groups[name] = self._evaluator.judge(name)
            await loop_slice.pause()
        after = self._evaluator.snapshot_of(groups, self._client.cluster.cluster_id)
        before, self.snapshot = self.snapshot, after
        for change in changes(before, self.snapshot):
            for listener in self.on_change:
                listener(change)
        return self.snapshot

    async def observe_or_keep(self) -> LagSnapshot:
        """Observe; if that fails, keep the verdicts and set `snapshot.error`."""
        try:
            return await self.observe()
        except KafkaError as error:
            logger.warning("Consumer lag was not updated: %s", error, extra=event("lag.not_read"))
            self.snapshot = replace(self.snapshot, error=str(error))
        return self.snapshot

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.error("The lag monitor has stopped", exc_info=error, extra=event("lag.stopped"))
            self._reason = f"The lag monitor has stopped: {error!r}"
            self._stopped.set()

    async def _observe_always(self) -> None:
        loop = asyncio.get_running_loop()
        interval = self.rules.interval_ms / 1000
        due = loop.time() + interval
        while True:
            await asyncio.sleep(max(due - loop.time(), 0))
            await self.observe_or_keep()
            self._round_ended.set()
            self._round_ended = asyncio.Event()
            # A round that takes longer than the interval is followed by the next one after a whole interval.
            due = max(due, loop.time()) + interval


def changes(before: LagSnapshot, after: LagSnapshot) -> Iterator[StatusChange]:
    """Return the groups whose status differs. A new group is reported only if it is not OK."""
    for name, lag in after.groups.items():
        known = before.groups.get(name)
        previous = Status.OK if known is None else known.status
        if previous != lag.status:
            yield StatusChange(after.time_ms, after.cluster_id, previous, lag.status, lag)
    for name, lag in before.groups.items():
        if name not in after.groups and lag.status is not Status.OK:
            yield StatusChange(after.time_ms, after.cluster_id, lag.status, Status.NOTFOUND, lag)
