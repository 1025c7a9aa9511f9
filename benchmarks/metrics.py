"""What metrics cost: processor time of producing and consuming, memory, and a scrape with 2,000 partitions.

Two nodes run at the same time, one with `metrics.port`; clients run on them in turn, and the CPU times of the
undisturbed turns are compared, as in `benchmarks.authorizer`. A scrape reports the processor time of the
event loop that the previous one took. `python -m benchmarks.metrics [SHARE]` measures it alone.
"""

from __future__ import annotations

import statistics
import sys
import urllib.request
from contextlib import ExitStack

from benchmarks.brokers import Broker, Software, moldau
from benchmarks.clients import Librdkafka
from benchmarks.processes import cpu_seconds, memory_megabytes, undisturbed
from benchmarks.workloads import Figures
from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AdminClient, checked
from tests.harness.apache.node import free_port
from tests.harness.wire.requests import create_and_wait

PARTITIONS = 2000
SCRAPE = f"scrape with {PARTITIONS:,} partitions: CPU ms of the event loop"
SCRAPE_GROUP = f"{SCRAPE}, with a group that reads all of them"
SCRAPE_KILOBYTES = f"scrape with {PARTITIONS:,} partitions, kB"
MEMORY = "resident memory with metrics minus without, idle, MB"
_TURNS = 9
_SCRAPES = 10
_LOADS = (
    ("100 B", 100, 3_000_000, ()),
    ("1 KiB", 1024, 300_000, ()),
    ("one record a request", 100, 20_000, ("linger.ms=0", "batch.num.messages=1")),
)
_SCRAPE_SECONDS = "moldau_metrics_scrape_seconds "


def cpu_name(verb: str, load: str) -> str:
    return f"broker CPU with metrics over none, {verb} {load}"


FIGURES = (
    *(cpu_name("produce", load) for load, *_ in _LOADS),
    # A fetch takes many records, however they were produced.
    *(cpu_name("consume", load) for load, _, _, settings in _LOADS if not settings),
    SCRAPE,
    SCRAPE_GROUP,
    SCRAPE_KILOBYTES,
    MEMORY,
)


def measure(software: Software, librdkafka: Librdkafka, share: float = 1.0) -> Figures:
    """Return the figures of one round on two new nodes; none for a broker without this endpoint."""
    if software.name != "moldau":
        return {}
    port = free_port()
    with ExitStack() as stack:
        plain = stack.enter_context(Broker(software))
        measured = stack.enter_context(Broker(software, settings={"metrics.port": str(port)}))
        for broker in (plain, measured):
            broker.first_start()
        figures: Figures = {MEMORY: memory_megabytes(measured.pid) - memory_megabytes(plain.pid)}
        for load, size, count, settings in _LOADS:
            records = max(1000, int(count * share))
            figures |= _compare(librdkafka, (plain, measured), load, size, records, settings)
        return figures | _scrapes(measured, port)


def _compare(
    librdkafka: Librdkafka,
    both: tuple[Broker, Broker],
    load: str,
    size: int,
    count: int,
    settings: tuple[str, ...],
) -> Figures:
    topic = "bench-" + load.replace(" ", "-")
    measured_verbs = {"produce": ("acks=1", *settings)} | ({} if settings else {"consume": ()})
    costs: dict[tuple[str, Broker], list[float]] = {
        (verb, broker): [] for verb in measured_verbs for broker in both
    }
    # A topic that is written to in every turn, and one that is read.
    topics = {"produce": topic, "consume": f"{topic}-read"}
    for broker in both:
        for each in topics.values():
            create_and_wait(broker.bootstrap, each)
            librdkafka.run("produce", broker.bootstrap, each, count, size, ("acks=1", *settings))
    for turn in range(_TURNS):
        for broker in both if turn % 2 == 0 else reversed(both):
            for verb, words in measured_verbs.items():
                before = cpu_seconds(broker.pid)
                librdkafka.run(verb, broker.bootstrap, topics[verb], count, size, words)
                costs[verb, broker].append(cpu_seconds(broker.pid) - before)
    plain, measured = both
    return {
        cpu_name(verb, load): undisturbed(costs[verb, measured]) / undisturbed(costs[verb, plain])
        for verb in measured_verbs
    }


def _scrapes(broker: Broker, port: int) -> Figures:
    create_and_wait(broker.bootstrap, "bench-partitions", partitions=PARTITIONS)
    figures: Figures = {}
    figures[SCRAPE], figures[SCRAPE_KILOBYTES] = _scraped(port)
    with AdminClient(broker.bootstrap) as admin:
        offsets = {TopicPartition("bench-partitions", index): 0 for index in range(PARTITIONS)}
        checked(admin.alter_group_offsets("bench-group", offsets))
    figures[SCRAPE_GROUP], _ = _scraped(port)
    return figures


def _scraped(port: int) -> tuple[float, float]:
    """Return the milliseconds of the event loop that a scrape takes, and its size in kB."""
    times, size = [], 0
    for _ in range(_SCRAPES):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        size = len(text)
        [line] = [line for line in text.splitlines() if line.startswith(_SCRAPE_SECONDS)]
        times.append(float(line.removeprefix(_SCRAPE_SECONDS)) * 1000)
    # The first one reports a scrape before the topic or the group existed.
    return statistics.median(times[1:]), size / 1000


if __name__ == "__main__":
    for figure, value in measure(
        moldau(), Librdkafka(), float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    ).items():
        print(f"{figure}: {value:.4g}")
