"""Move the time of a node forward: wall clock, monotonic clock and the timers of the loop.

A `ShiftedLoop` is a real loop over real sockets whose clock can be advanced; then periodic jobs, deadlines
and idle timeouts are due. `Time` is the node's clock; its wall clock can also be set back, as by an
operator or NTP.

With an `InlinePool`, everything that is due has happened when `Time.passes` returns, so a test can also
check what has *not* happened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from moldau.base.pool import InlinePool
from moldau.protocol.schema import Message
from moldau.server.node import Node
from tests.harness.nodes.node import connected, running_node

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

#: No heartbeats are sent while time is advanced; session timeouts have tests of their own.
PATIENT = {"broker.session.timeout.ms": str(20 * DAY), "connections.max.idle.ms": str(20 * DAY)}


class ShiftedLoop(asyncio.SelectorEventLoop):
    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead

    @property
    def is_quiet(self) -> bool:
        """Whether no callback is ready."""
        return not self._ready  # type: ignore[attr-defined]

    @property
    def pending_timers(self) -> int:
        return sum(1 for timer in self._scheduled if not timer.cancelled())  # type: ignore[attr-defined]


class Time:
    """The clock of a node in a `ShiftedLoop`."""

    def __init__(self, loop: ShiftedLoop) -> None:
        self._loop = loop
        self._wall_shift_ms = 0

    def time_ms(self) -> int:
        return self.time_ns() // 1_000_000

    def time_ns(self) -> int:
        return time.time_ns() + self._wall_shift_ms * 1_000_000

    def monotonic(self) -> float:
        return self._loop.time()

    async def passes(self, milliseconds: int, *, step: int | None = None) -> None:
        """Advance the time, in intervals of `step` so that periodic jobs run more than once."""
        left = milliseconds
        while left > 0:
            now = min(left, step or left)
            self._wall_shift_ms += now
            self._loop.ahead += now / 1000
            left -= now
            await self._settle()

    def set_wall(self, by_ms: int) -> None:
        """Set the wall clock; no time passes."""
        self._wall_shift_ms += by_ms

    async def _settle(self) -> None:
        quiet = 0
        while quiet < 5:
            await asyncio.sleep(0)
            quiet = quiet + 1 if self._loop.is_quiet else 0


class TimedNode:
    """A running node, its clock, and requests over a new connection each."""

    def __init__(self, node: Node, clock: Time, folder: Path) -> None:
        self.node = node
        self.time = clock
        self.logs = folder / "logs"

    async def ask(self, request: Message, version: int | None = None) -> Any:
        async with connected(self.node) as connection:
            return await connection.call(request, version)

    def files(self, partition: str, ending: str = ".log") -> list[str]:
        return sorted(each.name for each in (self.logs / partition).iterdir() if each.name.endswith(ending))


@asynccontextmanager
async def timed_node(
    folder: Path, config: Mapping[str, str] | None = None, clock: Time | None = None
) -> AsyncIterator[TimedNode]:
    """`clock` is the clock of an earlier run, which continues."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, ShiftedLoop):
        raise TypeError("a timed node needs a loop whose time can be moved: use `run`")
    clock = clock or Time(loop)
    async with running_node(folder, config, clock=clock, pool=InlinePool()) as node:
        yield TimedNode(node, clock, folder)


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=ShiftedLoop) as runner:
        runner.run(scenario())
