"""The workloads of a round, run one after the other on a new node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from benchmarks.brokers import Broker, Software
from benchmarks.clients import JavaClient, Librdkafka, Outcome
from benchmarks.processes import cpu_seconds, peak_of
from tests.harness.wire.requests import create_and_wait

Figures = dict[str, float]

#: Names of figures with their units, which the tables, the aims and the picture use.
READY = "format to first acknowledged record, s"
IDLE = "resident memory idle, MB"
LOADED = "resident memory under load, at most, MB"
RECORDS = "records/s"
MEGABYTES = "MB/s"
CPU = "broker CPU s per million records"
REQUESTS = "requests/s"
LATENCY_RATE = 500


def latency_name(quantile: str) -> str:
    return f"end to end at {LATENCY_RATE} records/s, acks=all: {quantile}, ms"


@dataclass(frozen=True, slots=True)
class Produce:
    """A workload of librdkafka's producer; with `consumed`, the topic is consumed afterwards."""

    name: str
    size: int
    count: int
    acks: str = "1"
    settings: tuple[str, ...] = ()
    connections: int = 1
    consumed: str = ""
    shown: tuple[str, ...] = (RECORDS, MEGABYTES, CPU)


_EAGER = ("linger.ms=0",)
_ONE_BY_ONE = ("linger.ms=0", "batch.num.messages=1")
_EAGER_SHOWN = (RECORDS, REQUESTS, CPU)

PRODUCE = (
    Produce("produce 100 B, acks=1", 100, 6_000_000, consumed="consume 100 B"),
    Produce("produce 100 B, acks=all", 100, 6_000_000, acks="all"),
    Produce("produce 1 KiB, acks=1", 1024, 1_200_000, consumed="consume 1 KiB"),
    Produce("produce 1 KiB, acks=all", 1024, 1_200_000, acks="all"),
    Produce("produce 100 B, 20 connections", 100, 2_000_000, connections=20),
    Produce("produce 1 KiB, 20 connections", 1024, 400_000, connections=20),
    Produce("produce 100 B, linger.ms=0", 100, 1_000_000, settings=_EAGER, shown=_EAGER_SHOWN),
    Produce(
        "produce 100 B, linger.ms=0, 20 connections",
        100, 150_000, settings=_EAGER, connections=20, shown=_EAGER_SHOWN,
    ),
    Produce(
        "one record a request", 100, 40_000, settings=_ONE_BY_ONE, shown=(REQUESTS, CPU)
    ),
    Produce(
        "one record a request, 20 connections",
        100, 50_000, settings=_ONE_BY_ONE, connections=20, shown=(REQUESTS, CPU),
    ),
)  # fmt: skip


@dataclass(slots=True)
class Round:
    """One round of one broker; the workloads fill `figures`."""

    librdkafka: Librdkafka
    java: JavaClient | None
    scale: float = 1.0
    figures: Figures = field(default_factory=dict)

    def measure(self, software: Software) -> Figures:
        with Broker(software) as broker:
            self.figures[READY] = broker.first_start()
            self.figures[IDLE] = broker.memory()
            self._warm_up(broker)
            with peak_of(broker.memory) as peak:
                self._latency(broker)
                for load in PRODUCE:
                    self._produce(broker, load)
                if self.java is not None:
                    self._java(broker, self.java)
                self.figures[LOADED] = peak()
        return self.figures

    def _warm_up(self, broker: Broker) -> None:
        """Warm both brokers up without measuring: a JVM is slow until it has compiled frequent code."""
        bootstrap, topic, count = broker.bootstrap, _topic(broker, "warm-up"), self._scaled(1_500_000)
        self.librdkafka.run("produce", bootstrap, topic, count, 100)
        self.librdkafka.run("consume", bootstrap, topic, count, 100)
        self.librdkafka.run("produce", bootstrap, topic, self._scaled(20_000), 100, _ONE_BY_ONE)

    def _produce(self, broker: Broker, load: Produce) -> None:
        topic, count = _topic(broker, load.name, load.connections), self._scaled(load.count)
        settings = (f"acks={load.acks}", *load.settings, f"connections={load.connections}")
        run = partial(
            self.librdkafka.run, bootstrap=broker.bootstrap, topic=topic, count=count, size=load.size
        )
        produce = partial(run, "produce", settings=settings, partitions=load.connections)
        outcome = self._costed(broker, load.name, count, produce, load.shown)
        if REQUESTS in load.shown:
            self.figures[f"{load.name}: {REQUESTS}"] = outcome["requests_per_s"]
        if load.consumed:
            self._costed(broker, load.consumed, count, partial(run, "consume"), load.shown)

    def _latency(self, broker: Broker) -> None:
        topic = _topic(broker, "latency")
        settings = (str(LATENCY_RATE), "acks=all", "linger.ms=0")
        outcome = self.librdkafka.run("latency", broker.bootstrap, topic, self._scaled(2500), 100, settings)
        for quantile, key in (("p50", "p50_ms"), ("p99", "p99_ms"), ("p99.9", "p999_ms")):
            self.figures[latency_name(quantile)] = outcome[key]

    def _java(self, broker: Broker, java: JavaClient) -> None:
        for size, name, count in ((100, "100 B", 800_000), (1024, "1 KiB", 150_000)):
            topic, records = _topic(broker, f"java {name}"), self._scaled(count)
            produce = partial(java.produce, broker.bootstrap, topic, records, size, "all")
            consume = partial(java.consume, broker.bootstrap, topic, records)
            shown = (RECORDS, CPU)
            self._costed(broker, f"Java client, produce {name}, acks=all", records, produce, shown)
            self._costed(broker, f"Java client, consume {name}", records, consume, shown)

    def _costed(
        self, broker: Broker, name: str, count: int, work: Callable[[], Outcome], shown: tuple[str, ...]
    ) -> Outcome:
        before = cpu_seconds(broker.pid)
        outcome = work()
        spent = cpu_seconds(broker.pid) - before
        if RECORDS in shown:
            self.figures[f"{name}: {RECORDS}"] = outcome["records_per_s"]
        if MEGABYTES in shown:
            self.figures[f"{name}: {MEGABYTES}"] = outcome["mb_per_s"]
        self.figures[f"{name}: {CPU}"] = spent / count * 1e6
        return outcome

    def _scaled(self, count: int) -> int:
        return max(1000, int(count * self.scale))


def _topic(broker: Broker, name: str, partitions: int = 1) -> str:
    topic = "".join(letter if letter.isalnum() else "-" for letter in name)
    create_and_wait(broker.bootstrap, topic, partitions)
    return topic
