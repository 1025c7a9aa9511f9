"""What is measured of one program of one system, during one life of its process.

The process starts with a small filled topic: the results of all systems for it must be equal. Bulks of
records follow, the first one to warm it up, the second one measured; then records at two rates; then the
process is killed and started again while records arrive.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.processes import cpu_seconds, peak_of, unshared_megabytes
from benchmarks.streams.inputs import KEYS, Feed, Program, running, table_rows
from benchmarks.streams.outputs import PARTITIONS, Outputs
from benchmarks.streams.systems import Application, System
from moldau.client.admin.client import AdminClient
from moldau.client.admin.topic_types import NewTopic

Figures = dict[str, float]

RECORDS, CPU = "records/s", "CPU s per million records"
START, CONTINUE = "start to first output, s", "kill -9 to the first new output, s"
MEMORY = "memory at most, MB"
RATES = (100, 10_000)
_FIRST = 5_000
_DRAIN = 200_000
_GROWTH = 100_000
_RATE_SECONDS = 12.0
_CALM_SECONDS = 2.0
_DEADLINE_SECONDS = 300.0
_CONTINUE_SECONDS = 120.0
_MEMORY_SAMPLE_SECONDS = 1.0


def latency_name(quantile: str, rate: int) -> str:
    return f"{quantile} at {rate:,} records/s, ms"


def growth_names(keys: int) -> tuple[str, str]:
    return f"{keys:,} keys: {RECORDS}", f"{keys:,} keys: {CPU}"


class Life:
    """One application with its topics."""

    def __init__(self, system: System, program: Program, servers: str, folder: Path, name: str) -> None:
        folder.mkdir(parents=True)
        topics = [f"{name}-{suffix}" for suffix in (*program.sources, "out")]
        with AdminClient(servers) as admin:
            admin.create_topics([NewTopic(topic, PARTITIONS) for topic in topics])
        self.program = program
        self.feed = Feed(program, servers, name, int(_EPOCH_MS))
        self.outputs = Outputs(servers, topics[-1], is_table=program.is_table)
        self.application = Application(system, program.name, servers, folder, name)

    def first_output(self, began: float) -> float:
        while self.outputs.end() == 0:
            self._patient(began)
            time.sleep(0.02)
        return time.monotonic() - began

    def drained(self, began: float) -> float:
        """Wait for all outputs; return the time at which the last one was committed."""
        with self.outputs.watched() as changed:
            while True:
                time.sleep(0.1)
                if time.monotonic() - changed() > _CALM_SECONDS:
                    for _ in self.outputs.read(0.5):
                        continue
                    if self.outputs.total == self.feed.expected:
                        return changed()
                    self._patient(began)

    def bulk(self, count: int, keys: int = KEYS) -> tuple[float, float]:
        """Send records; return the seconds and the CPU seconds that the application needs for them."""
        committed = self.feed.bulk(count, keys)
        cpu = cpu_seconds(self.application.pid)
        finished = self.drained(committed)
        return finished - committed, cpu_seconds(self.application.pid) - cpu

    def latencies(self, rate: int, seconds: float) -> list[float]:
        took: list[float] = []
        with running(self.feed, rate):
            took += [now - at for at, now in self.outputs.read(seconds)]
        began = time.monotonic()
        while self.outputs.total != self.feed.expected:
            self._patient(began)
            took += [now - at for at, now in self.outputs.read(0.5)]
        return took

    def continued(self) -> float:
        """Kill and start the application while records arrive; return the seconds to the first new output."""
        with running(self.feed, RATES[0]):
            for _ in self.outputs.read(2.0):
                continue
            self.application.kill()
            killed = time.time() * 1000
            self.application.start()
            began = time.monotonic()
            while time.monotonic() < began + _CONTINUE_SECONDS:
                self.application.check()
                for at, now in self.outputs.read(0.1):
                    if at > killed:
                        return (now - killed) / 1000
        return float("nan")

    def _patient(self, began: float) -> None:
        self.application.check()
        if time.monotonic() > began + _DEADLINE_SECONDS:
            total, expected = self.outputs.total, self.feed.expected
            sys.exit(f"the outputs of {self.program.name} add up to {total} instead of {expected}")


_EPOCH_MS = time.time() * 1000


@contextmanager
def _living(life: Life) -> Iterator[Life]:
    try:
        yield life
    finally:
        life.application.kill()
        life.outputs.close()


def measured(life: Life, share: float, compare: Callable[[Any], None]) -> Figures:
    """Measure everything but the growth; `compare` receives the first results."""
    with _living(life):
        if life.program.name == "lookup":
            life.feed.fill("other", table_rows(KEYS))
        life.feed.bulk(_FIRST, KEYS // 10)
        began = time.monotonic()
        life.application.start()
        figures = {START: life.first_output(began)}
        life.drained(began)
        compare(life.outputs.contents())
        pid, count = life.application.pid, max(int(_DRAIN * share), 10_000)
        with peak_of(lambda: unshared_megabytes(pid), _MEMORY_SAMPLE_SECONDS) as peak:
            life.bulk(count // 2)
            seconds, cpu = life.bulk(count)
            figures |= {RECORDS: count / seconds, CPU: cpu / count * 1e6}
            for rate in RATES:
                quantiles = statistics.quantiles(life.latencies(rate, _RATE_SECONDS * max(share, 0.5)), n=100)
                figures[latency_name("p50", rate)] = quantiles[49]
                figures[latency_name("p99", rate)] = quantiles[98]
            figures[MEMORY] = peak()
        figures[CONTINUE] = life.continued()
    return figures


def growth(life: Life, keys: int, share: float) -> Figures:
    """Measure records over a state with this many keys."""
    with _living(life):
        life.feed.bulk(keys, keys, in_turn=True)
        began = time.monotonic()
        life.application.start()
        life.drained(began)
        count = max(int(_GROWTH * share), 10_000)
        seconds, cpu = life.bulk(count, keys)
    speed, cost = growth_names(keys)
    return {speed: count / seconds, cost: cpu / count * 1e6}
