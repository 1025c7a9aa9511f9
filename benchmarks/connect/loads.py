"""The loads of a worker: lines of a file to a topic, a topic to a file and to a table, and latency.

Rates and CPU time are measured after the first tenth of the records, so that start and warm-up are not in
them. CPU time is that of the worker's processes, without broker and database.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from benchmarks.connect.workers import Running
from benchmarks.processes import peak_of
from benchmarks.rounds import Figures
from moldau.base import ids
from moldau.base.errors import KafkaError
from moldau.client.admin.client import AdminClient, checked
from moldau.client.admin.offsets import OffsetSpec
from moldau.client.admin.topic_types import NewTopic
from tests.harness.databases.postgresql import PostgreSql

SOURCE, SINK, JDBC = "file source", "file sink", "JDBC sink"
RATE, CPU = "records/s", "CPU s per million records"
READY, FIRST = "start to the first answer, s", "start to the first record, s"
P50, P99 = "file to topic to file, p50 ms", "file to topic to file, p99 ms"
IDLE, MEMORY = "two idle connectors, % of a core", "memory at most, MB"

_LINES, _ROWS = 1_000_000, 200_000
_LINE_BYTES = 100
_LATENCY_RATE = 200
_LOAD_SECONDS = 400.0
#: Settings of a connector whose records are lines.
_STRINGS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}
_FIELDS = {"id": "int64", "name": "string", "amount": "double", "visits": "int32", "note": "string"}


@dataclass(frozen=True, slots=True)
class Inputs:
    """A node with the topics `lines` and `rows`, a file of lines, and a database."""

    bootstrap: str
    folder: Path
    database: PostgreSql
    share: float

    @property
    def lines(self) -> int:
        return int(_LINES * self.share)

    @property
    def rows(self) -> int:
        return int(_ROWS * self.share)

    @property
    def file(self) -> Path:
        return self.folder / "lines.txt"

    def fill(self) -> None:
        with AdminClient(self.bootstrap) as admin:
            checked(admin.create_topics([NewTopic("lines", 1), NewTopic("rows", 1)]))
        lines = [_line(number) for number in range(self.lines)]
        self.file.write_bytes(b"".join(line + b"\n" for line in lines))
        _produce(self.bootstrap, "lines", [(None, line) for line in lines])
        _produce(self.bootstrap, "rows", [row(number) for number in range(self.rows)])


def _line(number: int) -> bytes:
    return (b"%09d " % number + b"the quick brown fox jumps over the lazy dog; " * 3)[:_LINE_BYTES]


def row(number: int) -> tuple[bytes, bytes]:
    """Return key and value as JSON with schema; the keys ascend."""
    values = {
        "id": number,
        "name": f"customer {number % 5000}",
        "amount": number * 0.25,
        "visits": number % 100,
        "note": "the quick brown fox jumps over the lazy dog",
    }
    return _with_schema({"id": number}), _with_schema(values)


def _with_schema(values: Mapping[str, Any]) -> bytes:
    fields = [{"field": name, "type": _FIELDS[name], "optional": False} for name in values]
    schema = {"type": "struct", "optional": False, "name": "row", "fields": fields}
    # Without spaces, as Kafka's JsonConverter writes it.
    return json.dumps({"schema": schema, "payload": values}, separators=(",", ":")).encode()


def _produce(bootstrap: str, topic: str, records: list[tuple[bytes | None, bytes]]) -> None:
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000}
    producer = Producer(settings)
    for key, value in records:
        while True:
            try:
                producer.produce(topic, value, key, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def measure(running: Running, inputs: Inputs, turn: str) -> Figures:
    """Run all loads on a started worker."""
    figures: Figures = {READY: running.ready_seconds}
    with peak_of(running.memory) as peak:
        figures |= _file_source(running, inputs, turn)
        figures |= _file_sink(running, inputs, turn)
        figures |= _jdbc_sink(running, inputs, turn)
        figures |= _latency(running, inputs, turn)
    return figures | {MEMORY: peak()}


def _file_source(running: Running, inputs: Inputs, turn: str) -> Figures:
    topic = f"from-file-{turn}"
    config = {"connector.class": "FileStreamSource", "file": str(inputs.file), "topic": topic, **_STRINGS}
    with AdminClient(inputs.bootstrap) as admin:
        checked(admin.create_topics([NewTopic(topic, 1)]))
        with running.connector(topic, config):
            _wait_for(running, lambda: _end_offset(admin, topic) > 0)
            first = time.monotonic() - running.begin
            figures = _rate(running, SOURCE, inputs.lines, lambda: _end_offset(admin, topic))
    return {FIRST: first, **figures}


def _file_sink(running: Running, inputs: Inputs, turn: str) -> Figures:
    name = f"to-file-{turn}"
    target = inputs.folder / f"{name}.txt"
    config = {"connector.class": "FileStreamSink", "file": str(target), "topics": "lines", **_STRINGS}
    with running.connector(name, config):
        figures = _rate(running, SINK, inputs.lines, lambda: _size(target) // (_LINE_BYTES + 1))
    target.unlink()
    return figures


def _jdbc_sink(running: Running, inputs: Inputs, turn: str) -> Figures:
    import psycopg

    database = inputs.database.database()
    url = f"{inputs.database.url(database)}"
    config = {"topics": "rows", "connection.url": url, **running.worker.jdbc}
    with inputs.database.connect(database) as connection:

        def written() -> int:
            # The keys ascend, and their index answers.
            with suppress(psycopg.errors.UndefinedTable):
                return int(connection.execute("SELECT max(id) FROM rows").fetchone()[0] or -1) + 1
            return 0

        with running.connector(f"to-table-{turn}", config):
            figures = _rate(running, JDBC, inputs.rows, written)
        found = connection.execute("SELECT count(*) FROM rows").fetchone()[0]
    if found != inputs.rows:
        sys.exit(f"{running.worker.name} wrote {found} of {inputs.rows} rows")
    return figures


def _rate(running: Running, load: str, count: int, done: Callable[[], int]) -> Figures:
    """Return records per second and CPU time from the first tenth to the last record."""
    _wait_for(running, lambda: done() >= count // 10)
    first, begin, cpu = done(), time.monotonic(), running.cpu()
    _wait_for(running, lambda: done() >= count)
    seconds, spent = time.monotonic() - begin, running.cpu() - cpu
    measured = max(1, count - first)
    return {f"{load}: {RATE}": measured / seconds, f"{load}: {CPU}": spent / measured * 1e6}


def _wait_for(running: Running, condition: Callable[[], bool]) -> None:
    begin = time.monotonic()
    seconds = 1
    while not condition():
        running.check(begin + _LOAD_SECONDS)
        if time.monotonic() > begin + seconds:
            running.check_tasks()
            seconds += 5
        time.sleep(0.02)


def _end_offset(admin: AdminClient, topic: str) -> int:
    partition = ids.TopicPartition(topic, 0)
    try:
        return checked(admin.list_offsets({partition: OffsetSpec.LATEST}))[partition].offset
    except KafkaError:
        return 0


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _latency(running: Running, inputs: Inputs, turn: str) -> Figures:
    """Return latencies of lines that are appended at a steady rate, then the CPU time without any."""
    seconds = 5 if inputs.share < 1 else 15
    name = f"latency-{turn}"
    source, target = inputs.folder / f"{name}.in", inputs.folder / f"{name}.out"
    source.touch()
    with AdminClient(inputs.bootstrap) as admin:
        checked(admin.create_topics([NewTopic(name, 1)]))
    reading = {"connector.class": "FileStreamSource", "file": str(source), "topic": name, **_STRINGS}
    writing = {"connector.class": "FileStreamSink", "file": str(target), "topics": name, **_STRINGS}
    with running.connector(f"{name}-in", reading), running.connector(f"{name}-out", writing):
        with source.open("ab", buffering=0) as file:
            file.write(b"%d\n" % time.time_ns())
            _wait_for(running, lambda: _size(target) > 0)
            latencies = _round_trips(running, file, target, seconds * _LATENCY_RATE)
        cpu = running.cpu()
        time.sleep(seconds)
        idle = (running.cpu() - cpu) / seconds * 100
    # The first seconds include the JIT compiler's work.
    latencies = sorted(latencies[len(latencies) // 3 :])
    return {P50: latencies[len(latencies) // 2], P99: latencies[len(latencies) * 99 // 100], IDLE: idle}


def _round_trips(running: Running, source: Any, target: Path, count: int) -> list[float]:
    """Append lines; return the milliseconds until each was in the other file."""
    latencies: list[float] = []
    begin, sent, rest = time.monotonic(), 0, b""
    with target.open("rb") as file:
        file.seek(0, 2)
        while len(latencies) < count:
            running.check(begin + count / _LATENCY_RATE + 60)
            while sent < count and time.monotonic() >= begin + sent / _LATENCY_RATE:
                source.write(b"%d\n" % time.time_ns())
                sent += 1
            *lines, rest = (rest + file.read()).split(b"\n")
            latencies += [(time.time_ns() - int(line)) / 1e6 for line in lines]
            time.sleep(0.001)
    return latencies
