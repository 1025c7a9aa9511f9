"""The jobs of `benchmarks.pipelines`: one process with one Spark session and one connector; it prints JSON.

The start is measured in a separate process: `FIRST_ROW` is the time from before `pyspark` is imported to the
first row of a topic, with a `quick_start` session on Moldau's side. Every throughput job runs twice in a
normal session, and the second run counts. CPU time is that of the driver, its JVM and the Python workers.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.processes import cpu_seconds
from benchmarks.workloads import CPU, RECORDS, Figures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The argument for a process that measures only the start.
START = "start"
FIRST_ROW = "import to the first row of a topic, s"
SESSION = "import to a session, s"
BATCH = "batch read 100 B"
BATCH_LARGE = "batch read 1 KiB"
STREAM = "streaming read 100 B, all available"
LIMITED = "streaming read 100 B, 1 M a batch"
COPY = "topic to topic 100 B"
WINDOWS = "JSON, count in 1-minute windows"
PARQUET = "the same rows from Parquet"
_CORES = 2
_RATE, _LATENCY_SECONDS = 100, 12
_WINDOW_PARTITIONS = "4"


class Inputs(NamedTuple):
    """The prepared topics `small`, `large` and `events`, and their numbers of records."""

    servers: str
    folder: str
    small: int
    large: int
    events: int


def latency_name(quantile: str) -> str:
    return f"copy at {_RATE} records/s, end to end, {quantile} ms"


class Jobs:
    def __init__(self, inputs: Inputs, connector: str, turn: str) -> None:
        self.inputs = inputs
        self.official = connector
        self.turn = turn
        self.figures: Figures = {}
        self.spark: SparkSession = _official(connector) if connector else _ours()

    def run(self) -> Figures:
        inputs = self.inputs
        self._twice(BATCH, inputs.small, lambda: _drain(self._read("small")))
        self._twice(BATCH_LARGE, inputs.large, lambda: _drain(self._read("large")))
        self._twice(STREAM, inputs.small, lambda: self._stream("small", {}))
        self._twice(LIMITED, inputs.small, lambda: self._stream("small", {"maxOffsetsPerTrigger": "1000000"}))
        self._twice(COPY, inputs.small // 2, self._copy)
        self._twice(WINDOWS, inputs.events, self._windows)
        self._parquet()
        self._latency()
        return self.figures

    @property
    def _format(self) -> str:
        return "kafka" if self.official else "moldau"

    def _read(self, topic: str, options: dict[str, str] | None = None) -> DataFrame:
        reader = self.spark.read.format(self._format).option("kafka.bootstrap.servers", self.inputs.servers)
        return reader.option("subscribe", topic).options(**(options or {})).load()

    def _read_stream(self, topic: str, options: dict[str, str]) -> DataFrame:
        reader = self.spark.readStream.format(self._format).options(**options)
        reader = reader.option("kafka.bootstrap.servers", self.inputs.servers).option("subscribe", topic)
        return reader.load()

    def _twice(self, name: str, rows: int, job: Callable[[], object]) -> None:
        job()
        cpu, begin = cpu_seconds(os.getpid()), time.monotonic()
        job()
        self.figures[f"{name}: {RECORDS}"] = rows / (time.monotonic() - begin)
        self.figures[f"{name}: {CPU}"] = (cpu_seconds(os.getpid()) - cpu) / rows * 1e6

    def _folder(self) -> str:
        return f"{self.inputs.folder}/{self.turn}-{time.monotonic_ns()}"

    def _stream(self, topic: str, options: dict[str, str]) -> None:
        frame = self._read_stream(topic, {"startingOffsets": "earliest", **options})
        writer = frame.writeStream.format("noop").option("checkpointLocation", self._folder())
        _finished(writer.trigger(availableNow=True).start())

    def _copy(self) -> None:
        """Read half of the topic, so that the job takes as long as the others."""
        half = json.dumps({"small": {str(p): self.inputs.small // 8 for p in range(4)}})
        frame = self._read_stream("small", {"startingOffsets": half}).select("key", "value")
        writer = frame.writeStream.format(self._format).option("checkpointLocation", self._folder())
        writer = writer.option("kafka.bootstrap.servers", self.inputs.servers)
        _finished(writer.option("topic", self._new_topic()).trigger(availableNow=True).start())

    def _new_topic(self) -> str:
        from moldau.client import AdminClient
        from moldau.client.admin.topic_types import NewTopic

        topic = f"out-{self.turn}-{time.monotonic_ns()}"
        with AdminClient(self.inputs.servers) as admin:
            admin.create_topics([NewTopic(topic, 4)])
        return topic

    def _windows(self) -> None:
        from pyspark.sql import functions as f

        self.spark.conf.set("spark.sql.shuffle.partitions", _WINDOW_PARTITIONS)
        frame = self._read_stream("events", {"startingOffsets": "earliest"})
        event = f.from_json(f.col("value").cast("string"), "user string, at long, amount int").alias("e")
        events = frame.select(event).select("e.*", f.timestamp_seconds("e.at").alias("time"))
        windows = events.withWatermark("time", "1 minute").groupBy(f.window("time", "1 minute"), "user")
        writer = windows.count().writeStream.format("noop").outputMode("update")
        writer = writer.option("checkpointLocation", self._folder())
        _finished(writer.trigger(availableNow=True).start())

    def _parquet(self) -> None:
        folder = Path(self.inputs.folder) / "parquet"
        if not folder.exists():
            self._read("small").write.parquet(str(folder))
        self._twice(PARQUET, self.inputs.small, lambda: _drain(self.spark.read.parquet(str(folder))))

    def _latency(self) -> None:
        source, target = self._new_topic(), self._new_topic()
        frame = self._read_stream(source, {"startingOffsets": "earliest"}).select("key", "value")
        writer = frame.writeStream.format(self._format).option("checkpointLocation", self._folder())
        query = writer.option("kafka.bootstrap.servers", self.inputs.servers).option("topic", target).start()
        took = _latencies(self.inputs.servers, source, target)
        query.stop()
        quantiles = statistics.quantiles(took, n=100)
        self.figures[latency_name("p50")] = quantiles[49] * 1000
        self.figures[latency_name("p99")] = quantiles[98] * 1000


def started(inputs: Inputs, connector: str) -> Figures:
    """Measure the start up to the first row, with a `quick_start` session on Moldau's side."""
    begin = time.monotonic()
    spark = _official(connector) if connector else _ours(quick_start=True)
    session = time.monotonic() - begin
    reader = spark.read.format("kafka" if connector else "moldau").option("subscribe", "small")
    reader.option("kafka.bootstrap.servers", inputs.servers).load().limit(1).collect()
    first_row = time.monotonic() - begin
    spark.stop()
    return {SESSION: session, FIRST_ROW: first_row}


def _ours(*, quick_start: bool = False) -> SparkSession:
    from moldau import pipelines

    settings = {"spark.driver.memory": "2g"}
    return pipelines.session(
        "benchmark", master=f"local[{_CORES},4]", quick_start=quick_start, config=settings
    )


def _official(connector: str) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{_CORES}]").config("spark.jars", connector)
    builder = builder.config("spark.driver.memory", "2g").config("spark.driver.bindAddress", "127.0.0.1")
    spark: SparkSession = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _finished(query: Any) -> None:
    query.awaitTermination()


def _latencies(servers: str, source: str, target: str) -> list[float]:
    """Return the seconds from producing each record to its copy, after the query has copied the first one."""
    from confluent_kafka import Consumer, Producer

    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    consumer = Consumer({"bootstrap.servers": servers, "group.id": target, "auto.offset.reset": "earliest"})
    consumer.subscribe([target])
    producer.produce(source, b"first")
    producer.flush()
    while (message := consumer.poll(60)) is None or message.error():
        if message is None:
            sys.exit("the query did not copy a record within a minute")
    count = _RATE * _LATENCY_SECONDS
    sender = threading.Thread(target=_send, args=(producer, source, count))
    sender.start()
    took: list[float] = []
    while len(took) < count:
        message = consumer.poll(30)
        if message is None:
            sys.exit(f"{count - len(took)} of {count} records were not copied")
        if not message.error():
            took.append(time.time() - float(message.value()))
    sender.join()
    consumer.close()
    return took


def _send(producer: Any, topic: str, count: int) -> None:
    begin = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, begin + number / _RATE - time.monotonic()))
        producer.produce(topic, repr(time.time()).encode())
        producer.poll(0)
    producer.flush()


def main() -> int:
    words, connector, turn = sys.argv[1:]
    inputs = Inputs(**json.loads(words))
    if turn == START:
        print(json.dumps(started(inputs, connector)))
        return 0
    jobs = Jobs(inputs, connector, turn)
    print(json.dumps(jobs.run()))
    jobs.spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
