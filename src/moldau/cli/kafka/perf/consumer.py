"""kafka-consumer-perf-test: consume records as fast as possible and print the throughput.

Without --group, all partitions are assigned directly and the rebalance time is 0.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.console.reading import Assignment, ReadPlan, Subscription, failed
from moldau.cli.kafka.perf.progress import MEGABYTE, ProgressLine, Statistics, format_date
from moldau.cli.shared.arguments import ToolParser, UsageError, key_values, require_one
from moldau.cli.shared.connection import add_bootstrap_options, bootstrap_servers, load_client_config
from moldau.cli.shared.librdkafka import ReportOnce, check_reachable, open_consumer
from moldau.cli.shared.tool import interrupted_by_sigterm, run_tool

if TYPE_CHECKING:
    from confluent_kafka import Consumer

BATCH = 10_000
POLL_SECONDS = 0.1
COLUMNS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-consumer-perf-test")
    add_bootstrap_options(parser)
    parser.option("--topic", "TOPIC", "The topic to consume.")
    parser.option("--include", "REGEX", "A regular expression for the topics to consume.")
    parser.option("--num-records", "COUNT", "REQUIRED: the number of records to consume.", type=int)
    parser.option("--messages", "COUNT", "DEPRECATED: use --num-records.", type=int)
    parser.option("--group", "GROUP", "Consume as a member of this group.")
    parser.option(
        "--fetch-size",
        "BYTES",
        "Fetch at most this many bytes per partition and request (1048576 by default).",
        type=int,
        default=MEGABYTE,
    )
    parser.flag("--from-latest", "Start at the log end offset instead of the log start offset.")
    parser.option(
        "--socket-buffer-size",
        "BYTES",
        "Size of the TCP receive buffer in bytes (2097152 by default).",
        type=int,
        default=2 * MEGABYTE,
    )
    parser.option(
        "--command-property", "K=V", "A consumer setting. May be repeated.", action="append", default=[]
    )
    parser.hidden("--consumer.config", dest="command_config")
    parser.flag("--print-metrics", "Print the client's metrics at the end.")
    parser.flag("--show-detailed-stats", "Print a line every --reporting-interval.")
    parser.option(
        "--timeout",
        "MS",
        "Exit if no record arrives within this many milliseconds (10000 by default).",
        nargs="?",
        type=int,
        default=10_000,
    )
    parser.option(
        "--reporting-interval",
        "MS",
        "Milliseconds between lines of detailed statistics (5000 by default).",
        type=int,
        default=5000,
    )
    parser.option(
        "--date-format",
        "PATTERN",
        "Format of times, in the notation of Java's SimpleDateFormat.",
        default="yyyy-MM-dd HH:mm:ss:SSS",
    )
    parser.hidden("--threads")
    parser.hidden("--num-fetch-threads")
    parser.flag("--hide-header", "Do not print the line with the column names.")
    return parser


def _execute(options: argparse.Namespace) -> None:
    require_one(options, "topic", "include")
    require_one(options, "messages", "num-records")
    if options.reporting_interval <= 0:
        raise UsageError("Reporting interval must be greater than 0.")
    properties = _properties(options)
    if not options.hide_header:
        first = "time, threadId" if options.show_detailed_stats else "start.time, end.time"
        print(f"{first}, {COLUMNS}")
    check_reachable(properties, options.topic)
    statistics = Statistics()
    callbacks: dict[str, Callable[..., None]] = {"stats_cb": statistics} if options.print_metrics else {}
    consumer = open_consumer(properties, **callbacks)
    run = _Run(options, consumer, properties)
    try:
        with interrupted_by_sigterm():
            run.consume()
        if options.print_metrics:
            statistics.wait(consumer.poll)
    finally:
        consumer.close()
    run.print_total()
    if options.print_metrics:
        statistics.print()


def _properties(options: argparse.Namespace) -> dict[str, str]:
    properties = load_client_config(options.command_config) | key_values(options.command_property)
    properties["bootstrap.servers"] = bootstrap_servers(options) or ""
    properties["group.id"] = options.group or f"perf-consumer-{random.randrange(100_000)}"
    if options.group is None:
        properties["enable.auto.commit"] = "false"
    properties["receive.buffer.bytes"] = str(options.socket_buffer_size)
    properties["max.partition.fetch.bytes"] = str(options.fetch_size)
    properties["auto.offset.reset"] = "latest" if options.from_latest else "earliest"
    properties.setdefault("check.crcs", "false")
    # Settings of librdkafka: keep fetching instead of pausing for a second when its queue is full.
    properties.setdefault("queued.min.messages", "1000000")
    properties.setdefault("fetch.queue.backoff.ms", "5")
    properties.setdefault("client.id", "perf-consumer-client")
    if options.print_metrics:
        properties["statistics.interval.ms"] = "500"
    return properties


class _Run:
    def __init__(self, options: argparse.Namespace, consumer: Consumer, properties: dict[str, str]) -> None:
        self._options = options
        self._consumer = consumer
        self._properties = properties
        self._wanted = options.num_records or options.messages
        self._timeout_ms = 10_000 if options.timeout is None else options.timeout
        self._progress = ProgressLine(self._wanted)
        self._records = 0
        self._size = 0
        self._join_ms = 0
        self._begin_ms = self._join_began = self._end_ms = _now_ms()

    def consume(self) -> None:
        assignment = self._start()
        last_ms = reported_ms = _now_ms()
        reported = (0, 0, 0)
        while self._records < self._wanted and _now_ms() - last_ms <= self._timeout_ms:
            assignment.discover()
            found = self._poll()
            now = _now_ms()
            if found:
                last_ms = now
            if now - reported_ms >= self._options.reporting_interval:
                if self._options.show_detailed_stats and found:
                    self._print_interval(reported_ms, now, *reported)
                reported, reported_ms = (self._records, self._size, self._join_ms), now
            self._progress.update(self._records, self._size)
        self._end_ms = _now_ms()
        self._progress.clear()
        if self._records < self._wanted:
            print(
                f"WARNING: Exiting before consuming the expected number of records: "
                f"timeout ({self._timeout_ms} ms) exceeded. "
                "You can use the --timeout option to increase the timeout."
            )

    def print_total(self) -> None:
        if self._options.show_detailed_stats:
            return
        elapsed = max(self._end_ms - self._begin_ms, 1)
        fetch_ms = elapsed - self._join_ms
        megabytes = self._size / MEGABYTE
        pattern = self._options.date_format
        print(
            f"{format_date(pattern, self._begin_ms)}, {format_date(pattern, self._end_ms)}, "
            f"{megabytes:.4f}, {megabytes / elapsed * 1000:.4f}, "
            f"{self._records}, {self._records / elapsed * 1000:.4f}, "
            f"{self._join_ms}, {fetch_ms}, {_per_second(megabytes, fetch_ms)}, "
            f"{_per_second(self._records, fetch_ms)}"
        )

    def _start(self) -> Assignment | Subscription:
        options = self._options
        offset = "latest" if options.from_latest else "earliest"
        plan = ReadPlan(options.topic, options.include, None, offset, options.group, self._properties)
        if options.group is None:
            return Assignment(self._consumer, plan, ReportOnce())
        listener = {"on_assign": self._assigned, "on_revoke": self._revoked}
        return Subscription(self._consumer, plan, ReportOnce(), **listener)

    def _poll(self) -> bool:
        """Count the records that have arrived; return whether there were any."""
        messages = self._consumer.consume(BATCH, timeout=POLL_SECONDS)
        size = 0
        bad = 0
        for message in messages:
            if message.error() is not None and failed(message):
                bad += 1
                continue
            size += len(message)
            key = message.key()
            if key is not None:
                size += len(key)
        self._size += size
        self._records += len(messages) - bad
        return len(messages) > bad

    def _assigned(self, consumer: Any, partitions: Any) -> None:
        self._join_ms += _now_ms() - self._join_began

    def _revoked(self, consumer: Any, partitions: Any) -> None:
        self._join_began = _now_ms()

    def _print_interval(self, begin_ms: int, end_ms: int, records: int, size: int, join_ms: int) -> None:
        elapsed = max(end_ms - begin_ms, 1)
        joined = self._join_ms - join_ms
        megabytes = (self._size - size) / MEGABYTE
        count = self._records - records
        self._progress.clear()
        print(
            f"{format_date(self._options.date_format, end_ms)}, 0, {self._size / MEGABYTE:.4f}, "
            f"{_per_second(megabytes, elapsed)}, {self._records}, {_per_second(count, elapsed)}, "
            f"{joined}, {elapsed - joined}, {_per_second(megabytes, elapsed - joined)}, "
            f"{_per_second(count, elapsed - joined)}",
            flush=True,
        )


def _per_second(amount: float, elapsed_ms: int) -> str:
    return f"{1000 * amount / elapsed_ms if elapsed_ms > 0 else 0.0:.4f}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
