"""Virtual time and the messages under way in it: delayed, reordered, lost and repeated, as a seed has it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from random import Random


@dataclass
class Weather:
    """How bad it is; all probabilities."""

    lost: float = 0.0
    repeated: float = 0.0
    delay_ms: float = 5.0
    slow: float = 0.0
    sync_ms: float = 2.0

    @classmethod
    def draw(cls, random: Random) -> Weather:
        return cls(
            lost=random.choice((0.0, 0.02, 0.1, 0.3)),
            repeated=random.choice((0.0, 0.05, 0.2)),
            delay_ms=random.choice((1.0, 5.0, 40.0)),
            slow=random.choice((0.0, 0.01, 0.1)),
            sync_ms=random.choice((0.0, 2.0, 30.0)),
        )


class Soup:
    """Time, and what is under way."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 0.0
        self.weather = Weather()
        self.cut: set[tuple[int, int]] = set()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def at(self, time: float, work: Callable[[], None]) -> None:
        heapq.heappush(self._events, (max(time, self.now), next(self._numbers), work))

    def later(self, ms: float, work: Callable[[], None]) -> None:
        self.at(self.now + ms, work)

    def carry(self, source: int, target: int, work: Callable[[], None]) -> None:
        """Bring something from one machine to another: once, later, twice or never."""
        random, weather = self.random, self.weather
        copies = 2 if random.random() < weather.repeated else 1
        for _ in range(copies):
            if random.random() < weather.lost or (source, target) in self.cut:
                continue
            delay = random.random() * weather.delay_ms
            if random.random() < weather.slow:
                delay += random.random() * 3000
            self.later(delay, lambda: None if (source, target) in self.cut else work())

    def run_until(self, time: float, done: Callable[[], bool] | None = None) -> bool:
        """Let things happen; True as soon as `done` says so."""
        while self._events and self._events[0][0] <= time:
            self.now, _, work = heapq.heappop(self._events)
            work()
            if done is not None and done():
                return True
        self.now = max(self.now, time)
        return done is not None and done()
