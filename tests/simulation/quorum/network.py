"""Virtual time and an unreliable network: messages are delayed, reordered, lost and duplicated, by a seed."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from random import Random


@dataclass
class Conditions:
    """Probabilities of loss, duplication and long delays; the longest normal delay and sync time."""

    loss: float = 0.0
    duplication: float = 0.0
    delay_ms: float = 5.0
    slow: float = 0.0
    sync_ms: float = 2.0

    @classmethod
    def draw(cls, random: Random) -> Conditions:
        return cls(
            loss=random.choice((0.0, 0.02, 0.1, 0.3)),
            duplication=random.choice((0.0, 0.05, 0.2)),
            delay_ms=random.choice((1.0, 5.0, 40.0)),
            slow=random.choice((0.0, 0.01, 0.1)),
            sync_ms=random.choice((0.0, 2.0, 30.0)),
        )


class Network:
    """The clock, the messages in flight and other scheduled events."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 0.0
        self.conditions = Conditions()
        self.disconnected: set[tuple[int, int]] = set()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def at(self, time: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (max(time, self.now), next(self._numbers), event))

    def after(self, ms: float, event: Callable[[], None]) -> None:
        self.at(self.now + ms, event)

    def deliver(self, source: int, target: int, event: Callable[[], None]) -> None:
        """Deliver a message from one node to another: once, twice or never, after a delay."""
        random, conditions = self.random, self.conditions
        copies = 2 if random.random() < conditions.duplication else 1
        for _ in range(copies):
            if random.random() < conditions.loss or (source, target) in self.disconnected:
                continue
            delay = random.random() * conditions.delay_ms
            if random.random() < conditions.slow:
                delay += random.random() * 3000
            self.after(delay, lambda: None if (source, target) in self.disconnected else event())

    def run_until(self, time: float, done: Callable[[], bool] | None = None) -> bool:
        """Process events until `time`, or until `done`; return whether it is done."""
        while self._events and self._events[0][0] <= time:
            self.now, _, event = heapq.heappop(self._events)
            event()
            if done is not None and done():
                return True
        self.now = max(self.now, time)
        return done is not None and done()
