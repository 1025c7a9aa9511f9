"""Samples taken every few seconds: the lag of the event loop, its idle time, rates."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from moldau.base.clock import Clock
from moldau.metrics.latencies import Latencies
from moldau.server.loop_lag import LoopLag

_INTERVAL_S: Final = 5.0
#: Samples in the window of one minute.
_SAMPLES: Final = 12


class LoopSampler:
    """Runs on the loop that it measures, from `start` to `stop`."""

    def __init__(
        self,
        loop_lag: LoopLag,
        clock: Clock,
        on_tick: Callable[[], None],
        on_sample: Callable[[], None],
    ) -> None:
        """`on_tick` is called many times a second, with the samples of the lag, `on_sample` every few."""
        self._clock = clock
        self._on_tick = on_tick
        self._on_sample = on_sample
        self.loop_lag = loop_lag
        self.lag = Latencies()
        self.started_at = clock.time_ms() / 1000
        #: Pairs of wall-clock and processor time of the loop's thread.
        self._samples: deque[tuple[float, float]] = deque(maxlen=_SAMPLES + 1)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self.loop_lag.on_sample = self._lag_sampled
        self._sample()

    def stop(self) -> None:
        self.loop_lag.on_sample = None
        if self._timer is not None:
            self._timer.cancel()

    def _lag_sampled(self, milliseconds: float) -> None:
        self.lag.record(int(milliseconds * 1000))
        self._on_tick()

    @property
    def idle_ratio(self) -> float:
        """The share of the last minute in which the loop used no processor."""
        wall, used = self._samples[0]
        elapsed = self._clock.monotonic() - wall
        return min(1.0, max(0.0, 1.0 - (time.thread_time() - used) / elapsed)) if elapsed > 0 else 1.0

    def _sample(self) -> None:
        self._samples.append((self._clock.monotonic(), time.thread_time()))
        self._on_sample()
        self._timer = asyncio.get_running_loop().call_later(_INTERVAL_S, self._sample)


class MeanSampler:
    """The mean of what was added to a total, over about a minute, as Kafka's `Avg` has windows."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SAMPLES + 1)

    def sample(self, total: float, count: int) -> None:
        """Record total and count; called with each sample of the loop."""
        self._samples.append((total, count))

    def mean(self, total: float, count: int) -> float:
        """Return the mean since the oldest sample; 0 if nothing was added."""
        total_before, count_before = self._samples[0] if self._samples else (0.0, 0)
        added = count - count_before
        return (total - total_before) / added if added > 0 else 0.0


class RateSampler:
    """The growth of a number per second, over about a minute. `now` returns monotonic seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SAMPLES + 1)

    def sample(self, value: int) -> None:
        """Record the number; called with each sample of the loop."""
        self._samples.append((self._now(), value))

    def per_second(self, value: int) -> float:
        if not self._samples:
            return 0.0
        when, before = self._samples[0]
        elapsed = self._now() - when
        return max(0, value - before) / elapsed if elapsed > 0 else 0.0
