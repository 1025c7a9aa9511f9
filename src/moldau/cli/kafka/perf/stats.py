"""Throughput and latency of a producer, and the lines that Kafka's performance test prints about them."""

from __future__ import annotations

import time
from array import array

from moldau.cli.kafka.perf.progress import MEGABYTE

#: The largest number of latencies kept for percentiles.
SAMPLES = 500_000


class _Window:
    """Records and latencies since `begin`."""

    __slots__ = ("begin", "count", "latencies", "latency_sum", "max_latency", "sampling", "size")

    def __init__(self, begin: float, expected: int) -> None:
        self.begin = begin
        self.count = 0
        self.size = 0
        self.latency_sum = 0.0
        self.max_latency = 0.0
        self.latencies = array("d")
        self.sampling = max(1, expected // SAMPLES)

    def add(self, latency_ms: float, size: int) -> None:
        if self.count % self.sampling == 0:
            self.latencies.append(latency_ms)
        self.count += 1
        self.size += size
        self.latency_sum += latency_ms
        if latency_ms > self.max_latency:
            self.max_latency = latency_ms

    def rates(self, now: float) -> tuple[float, float, float]:
        """Return records per second, megabytes per second and the average latency."""
        seconds = max(now - self.begin, 1e-3)
        average = self.latency_sum / self.count if self.count else 0.0
        return self.count / seconds, self.size / seconds / MEGABYTE, average

    def summary(self, now: float, word: str) -> str:
        rate, megabytes, average = self.rates(now)
        ordered = sorted(self.latencies) or [0.0]
        p50, p95, p99, p999 = (
            round(ordered[min(int(share * len(ordered)), len(ordered) - 1)])
            for share in (0.5, 0.95, 0.99, 0.999)
        )
        return (
            f"{self.count} {word}records sent, {rate:f} records/sec ({megabytes:.2f} MB/sec), "
            f"{average:.2f} ms avg latency, {self.max_latency:.2f} ms max latency, "
            f"{p50} ms 50th, {p95} ms 95th, {p99} ms 99th, {p999} ms 99.9th."
        )


class LatencyStats:
    def __init__(self, expected: int, interval_ms: int, warmup: int = 0) -> None:
        now = time.monotonic()
        self._expected = expected
        self._interval = interval_ms / 1000
        self._warmup = warmup
        self._all = _Window(now, expected)
        self._steady: _Window | None = None
        self._recent = _Window(now, expected)

    @property
    def count(self) -> int:
        return self._all.count

    @property
    def size(self) -> int:
        return self._all.size

    def elapsed_seconds(self) -> float:
        return time.monotonic() - self._all.begin

    def record(self, latency_ms: float, size: int) -> str | None:
        """Count an acknowledged record; return a line to print at the end of an interval."""
        self._all.add(latency_ms, size)
        self._recent.add(latency_ms, size)
        line = None
        if self._steady is not None:
            self._steady.add(latency_ms, size)
        elif self._warmup and self._all.count >= self._warmup:
            now = time.monotonic()
            self._steady, self._recent = _Window(now, self._expected), _Window(now, self._expected)
            line = "In steady state."
        if self._recent.count & 0x3F == 0 and self._interval_over():
            line = self._window_line()
        return line

    def print_total(self) -> None:
        now = time.monotonic()
        print(self._all.summary(now, ""))
        if self._steady is not None:
            print(self._steady.summary(now, "steady state "))

    def _interval_over(self) -> bool:
        return time.monotonic() - self._recent.begin >= self._interval

    def _window_line(self) -> str:
        now = time.monotonic()
        window, self._recent = self._recent, _Window(now, self._expected)
        rate, megabytes, average = window.rates(now)
        return (
            f"{window.count} records sent, {rate:.1f} records/sec ({megabytes:.2f} MB/sec), "
            f"{average:.1f} ms avg latency, {window.max_latency:.1f} ms max latency."
        )
