"""`python -m benchmarks.mirror`: copy topics with our mirror and with MirrorMaker 2, on the same nodes.

Every mirror starts with full topics on the source. The seconds until its first records arrive are the start;
records per second and CPU time are measured from there to the last record. Then records are produced one at a
time, and their latency to a consumer of the target is measured. CPU time and memory are those of the mirror's
processes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.__main__ import machine, publish_tables
from benchmarks.brokers import Broker, Software, apache, moldau
from benchmarks.clients import FOLDER
from benchmarks.mirror.mirrors import Mirror, mirror_makers, ours
from benchmarks.processes import cpu_seconds, peak_of, unshared_megabytes
from benchmarks.rounds import Figures, alternating, markdown
from moldau.base import ids
from moldau.base.errors import KafkaError
from moldau.client.admin.client import AdminClient, checked
from moldau.client.admin.offsets import OffsetSpec
from moldau.client.admin.topic_types import NewTopic
from tests.interop import jars

_PARTITIONS = 4
_COPY_SECONDS = 400.0
_LATENCY_RATE = 200
START, IDLE, MEMORY = "start, s", "idle, % of a core", "memory at most, MB"
P50, P99 = "latency p50, ms", "latency p99, ms"
#: Name of a load: size of a value, number of records.
LOADS = {"1 KiB": (1024, 400_000), "100 B": (100, 2_000_000)}


def main() -> int:
    options = _parser().parse_args()
    share = 0.1 if options.quick else 1.0
    node = _node(options.brokers)
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder, Broker(node) as source:
        source.first_start()
        _fill(source.bootstrap, share)
        rounds = alternating(
            _mirrors(options),
            options.rounds,
            lambda mirror: mirror.name,
            lambda mirror: _measure(mirror, node, source.bootstrap, Path(folder), share),
        )
    kept = {"machine": machine(), "brokers": options.brokers, "rounds": rounds}
    Path(options.json).write_text(json.dumps(kept, indent=2) + "\n")
    tables = f"{machine()}; nodes of {options.brokers}.\n\n{markdown(rounds)}\n"
    print(tables)
    if options.publish:
        publish_tables("mirror", tables)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mirror", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1, help="number of rounds per mirror")
    parser.add_argument("--quick", action="store_true", help="a tenth of the records")
    parser.add_argument("--brokers", choices=["moldau", "apache"], default="moldau", help="both clusters")
    parser.add_argument("--only", choices=["moldau", "mm2"], help="measure only these mirrors")
    parser.add_argument("--json", default="benchmarks-mirror.json", help="file for all figures")
    parser.add_argument("--publish", action="store_true", help="update the tables in docs/BENCHMARKS.md")
    return parser


def _node(name: str) -> Software:
    return moldau() if name == "moldau" else apache(jars.kafka_libs(), FOLDER)


def _mirrors(options: argparse.Namespace) -> list[Mirror]:
    found = ours() if options.only != "mm2" else []
    if options.only != "moldau":
        if shutil.which("java") is None:
            sys.exit("MirrorMaker 2 needs Java (apt install default-jdk-headless maven); --only moldau")
        found += mirror_makers(jars.mirror_libs())
    return found


def _topic(load: str) -> str:
    return f"load-{load.replace(' ', '-')}"


def _fill(bootstrap: str, share: float) -> None:
    with AdminClient(bootstrap) as admin:
        checked(admin.create_topics([NewTopic(_topic(load), _PARTITIONS) for load in LOADS]))
    for load, (size, count) in LOADS.items():
        settings = {
            "bootstrap.servers": bootstrap,
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
        }
        producer = Producer(settings)
        text = (b"the quick brown fox %d jumps over the lazy dog; " % size) * 30
        for number in range(int(count * share)):
            value = b"%09d" % number + text[: size - 9]
            while True:
                try:
                    producer.produce(_topic(load), value, partition=number % _PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush()


def _measure(mirror: Mirror, node: Software, source: str, folder: Path, share: float) -> Figures:
    """Measure a mirror with a new target."""
    figures: Figures = {}
    with Broker(node) as target:
        target.first_start()
        for load, (size, count) in LOADS.items():
            copy = _copy(mirror, source, target.bootstrap, folder, load, int(count * share))
            records, seconds, cpu, memory, start = copy
            figures[f"{load}: records/s"] = records / seconds
            figures[f"{load}: MB/s"] = records * size / seconds / 1e6
            figures[f"{load}: CPU s per million"] = cpu / records * 1e6
            figures[MEMORY] = max(memory, figures.get(MEMORY, 0.0))
            figures.setdefault(START, start)
        figures |= _latency(mirror, source, target.bootstrap, folder, 5 if share < 1 else 15)
    return figures


def _copy(
    mirror: Mirror, source: str, target: str, folder: Path, load: str, count: int
) -> tuple[int, float, float, float, float]:
    """Return records, seconds and CPU seconds after the start; memory, and the seconds of the start."""
    topic = f"{mirror.alias}.{_topic(load)}"
    with AdminClient(target) as admin:
        # Offsets of a topic that exists are listed without a delay.
        checked(admin.create_topics([NewTopic(topic, _PARTITIONS)]))
        begin = started = time.monotonic()
        cpu = 0.0
        with (
            _running(mirror, source, target, folder, _topic(load)) as process,
            peak_of(lambda: unshared_megabytes(process.pid)) as peak,
        ):
            while (now := _copied(admin, topic)) < count:
                _check(process, begin, folder, mirror)
                if now == 0:
                    started, cpu = time.monotonic(), cpu_seconds(process.pid)
                time.sleep(0.02)
            seconds = time.monotonic() - started
            spent = cpu_seconds(process.pid) - cpu
            return count, seconds, spent, peak(), started - begin


def _copied(admin: AdminClient, topic: str) -> int:
    where = {ids.TopicPartition(topic, index): OffsetSpec.LATEST for index in range(_PARTITIONS)}
    try:
        return sum(each.offset for each in checked(admin.list_offsets(where)).values())
    except KafkaError:
        return 0


def _check(process: subprocess.Popen[bytes], begin: float, folder: Path, mirror: Mirror) -> None:
    if process.poll() is not None or time.monotonic() > begin + _COPY_SECONDS:
        sys.exit(f"{mirror.name} does not copy: {(folder / f'{mirror.alias}.log').read_text()[-3000:]}")


def _latency(mirror: Mirror, source: str, target: str, folder: Path, seconds: int) -> Figures:
    """Return latencies at a few hundred records a second, and the CPU time of an idle mirror."""
    name = f"latency-{mirror.alias}-{time.time_ns()}"
    topic = f"{mirror.alias}.{name}"
    with AdminClient(source) as admin:
        checked(admin.create_topics([NewTopic(name, 1)]))
    producer = Producer({"bootstrap.servers": source, "linger.ms": 0})
    consumer = Consumer({"bootstrap.servers": target, "group.id": "latency", "auto.offset.reset": "earliest"})
    with _running(mirror, source, target, folder, name) as process:
        begin = time.monotonic()
        producer.produce(name, b"first", partition=0)
        producer.flush()
        while topic not in consumer.list_topics(timeout=10).topics:
            _check(process, begin, folder, mirror)
            time.sleep(0.1)
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(1)) is None or message.error() is not None:
            _check(process, begin, folder, mirror)
        latencies = _round_trips(producer, name, consumer, seconds * _LATENCY_RATE)
        cpu = cpu_seconds(process.pid)
        time.sleep(seconds)
        idle = (cpu_seconds(process.pid) - cpu) / seconds * 100
    consumer.close()
    # The first seconds include the JIT compiler's work.
    latencies = sorted(latencies[len(latencies) // 3 :])
    return {P50: latencies[len(latencies) // 2], P99: latencies[len(latencies) * 99 // 100], IDLE: idle}


def _round_trips(producer: Producer, topic: str, consumer: Consumer, count: int) -> list[float]:
    """Produce at a steady rate; return the milliseconds until each record was consumed."""
    latencies: list[float] = []
    begin = time.monotonic()
    sent = 0
    while len(latencies) < count and time.monotonic() < begin + count / _LATENCY_RATE + 60:
        while sent < count and time.monotonic() >= begin + sent / _LATENCY_RATE:
            producer.produce(topic, b"%d" % time.time_ns(), partition=0)
            sent += 1
        producer.poll(0)
        message = consumer.poll(0.001)
        if message is not None and message.error() is None and message.value().isdigit():
            latencies.append((time.time_ns() - int(message.value())) / 1e6)
    if len(latencies) < count:
        sys.exit(f"only {len(latencies)} of {count} records arrived")
    return latencies


@contextmanager
def _running(
    mirror: Mirror, source: str, target: str, folder: Path, topics: str
) -> Iterator[subprocess.Popen[bytes]]:
    process = mirror.start(folder, source, target, topics)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
