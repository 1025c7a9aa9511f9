"""Where this node's replicas lie, told to the controller: it must know which of them a failed disk takes.

What is found before the controller knows this broker waits until `begin`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from moldau.replication.replica_logs import Placed


class Placements:
    def __init__(self, report: Callable[[list[Placed]], None]) -> None:
        self._report = report
        self._waiting: list[Placed] = []
        self._begun = False

    def found(self, placed: Iterable[Placed]) -> None:
        self._waiting.extend(placed)
        if self._waiting and self._begun:
            waiting, self._waiting = self._waiting, []
            self._report(waiting)

    async def found_by(self, work: Awaitable[Iterable[Placed]]) -> None:
        self.found(await work)

    def begin(self) -> None:
        """The controller knows this broker."""
        self._begun = True
        self.found(())
