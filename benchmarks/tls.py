"""Produce and consume over TLS: the throughput, and the CPU time that the broker needs for a gigabyte.

The node has a plain listener, on which topics are created, and an SSL listener with a P-256 certificate. The
clients verify the certificate and the host name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.brokers import Broker, Software
from benchmarks.clients import Librdkafka, Outcome
from benchmarks.processes import cpu_seconds
from benchmarks.workloads import MEGABYTES, RECORDS, Figures
from tests.harness.wire.requests import create_and_wait

CPU_PER_GIGABYTE = "broker CPU s per GB"
#: Size, name and number of records.
_LOADS = ((100, "100 B", 4_000_000), (1024, "1 KiB", 800_000))


def produce_name(size: str) -> str:
    return f"TLS, produce {size}, acks=all"


def consume_name(size: str) -> str:
    return f"TLS, consume {size}"


def measure(software: Software, librdkafka: Librdkafka, share: float = 1.0) -> Figures:
    """Return the figures of one round on a new node."""
    figures: Figures = {}
    with Broker(software, tls=True) as broker:
        broker.first_start()
        _round_trip(broker, librdkafka, "warm-up", 100, int(1_500_000 * share), figures={})
        for size, name, count in _LOADS:
            _round_trip(broker, librdkafka, name, size, max(1000, int(count * share)), figures)
    return figures


def _round_trip(
    broker: Broker, librdkafka: Librdkafka, name: str, size: int, count: int, figures: Figures
) -> None:
    topic = "tls-" + name.replace(" ", "-")
    create_and_wait(broker.bootstrap, topic)
    run = partial(
        librdkafka.run,
        bootstrap=broker.tls_bootstrap,
        topic=topic,
        count=count,
        size=size,
    )
    settings = tuple(f"{key}={value}" for key, value in broker.client_settings.items())
    gigabytes = size * count / 1e9
    produce = partial(run, "produce", settings=("acks=all", *settings))
    figures |= _costed(broker, produce_name(name), gigabytes, produce)
    consume = partial(run, "consume", settings=settings)
    figures |= _costed(broker, consume_name(name), gigabytes, consume)


def _costed(broker: Broker, name: str, gigabytes: float, work: Callable[[], Outcome]) -> Figures:
    before = cpu_seconds(broker.pid)
    outcome = work()
    spent = cpu_seconds(broker.pid) - before
    return {
        f"{name}: {RECORDS}": outcome["records_per_s"],
        f"{name}: {MEGABYTES}": outcome["mb_per_s"],
        f"{name}: {CPU_PER_GIGABYTE}": spent / gigabytes,
    }
