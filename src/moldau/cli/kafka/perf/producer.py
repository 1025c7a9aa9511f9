"""kafka-producer-perf-test: send records at a given rate and print throughput and latency."""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.perf.progress import ProgressLine, Statistics
from moldau.cli.kafka.perf.stats import LatencyStats
from moldau.cli.shared.arguments import ToolParser, UsageError, require
from moldau.cli.shared.connection import load_client_config
from moldau.cli.shared.librdkafka import check_reachable, describe_error, open_producer
from moldau.cli.shared.tool import ToolError, interrupted_by_sigterm, run_tool, warn

if TYPE_CHECKING:
    from confluent_kafka import Producer

DEFAULT_TRANSACTION_DURATION_MS = 3000
#: Size of the random text from which payloads are cut.
POOL_SIZE = 1024 * 1024
POOL_STEP = 997


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-producer-perf-test")
    parser.option("--bootstrap-server", "HOST:PORT", "The broker(s) to connect to first.")
    parser.hidden("--broker-list", dest="bootstrap_server")
    parser.option("--topic", "TOPIC", "REQUIRED: the topic to produce to.")
    parser.option("--num-records", "COUNT", "REQUIRED: the number of records to send.", type=int)
    parser.option("--record-size", "BYTES", "Send random letters, this many bytes per record.", type=int)
    parser.option("--payload-file", "FILE", "Send payloads chosen at random from this file.")
    parser.option(
        "--payload-delimiter",
        "TEXT",
        "The delimiter of payloads in the file (\\n by default).",
        default="\\n",
    )
    parser.flag("--payload-monotonic", "Send the numbers 0, 1, 2 and so on.")
    parser.option(
        "--throughput",
        "RATE",
        "REQUIRED: send at most this many records per second; -1 for no limit.",
        type=float,
    )
    parser.option(
        "--command-property", "K=V", "One or more producer settings.", nargs="+", action="extend", default=[]
    )
    parser.hidden("--producer-props", nargs="+", action="extend", dest="command_property")
    parser.option("--command-config", "FILE", "Properties file with producer settings.")
    parser.hidden("--producer.config", dest="command_config")
    parser.flag("--print-metrics", "Print the client's metrics at the end.")
    parser.option("--transactional-id", "ID", "Send records in transactions with this transactional id.")
    parser.option(
        "--transaction-duration-ms",
        "MS",
        "Commit a transaction after this many milliseconds (3000 by default).",
        type=int,
    )
    parser.option(
        "--warmup-records",
        "COUNT",
        "Print a separate summary of the records after the first COUNT.",
        type=int,
        default=0,
    )
    parser.option(
        "--reporting-interval",
        "MS",
        "Print a line of statistics every this many milliseconds (5000 by default).",
        type=int,
        default=5000,
    )
    return parser


def _execute(options: argparse.Namespace) -> int:
    _check(options)
    properties = _properties(options)
    payload = _payload(options)
    check_reachable(properties, options.topic)
    statistics = Statistics()
    callbacks: dict[str, Callable[..., None]] = {"stats_cb": statistics} if options.print_metrics else {}
    producer = open_producer(properties, **callbacks)
    run = _Run(options, producer, payload)
    with interrupted_by_sigterm():
        run.send_all()
    if options.print_metrics:
        statistics.wait(producer.poll)
        statistics.print()
    return 1 if run.failed else 0


def _check(options: argparse.Namespace) -> None:
    require(options, "topic")
    for name in ("num_records", "throughput"):
        if getattr(options, name) is None:
            raise UsageError(f'Missing required argument "[{name.replace("_", "-")}]"')
    kinds = (options.record_size is not None, options.payload_file is not None, options.payload_monotonic)
    if sum(kinds) != 1:
        raise UsageError("Provide exactly one of --record-size, --payload-file or --payload-monotonic.")
    for name in ("num_records", "record_size", "transaction_duration_ms", "reporting_interval"):
        value = getattr(options, name)
        if value is not None and value <= 0:
            raise UsageError(f"--{name.replace('_', '-')} should be greater than zero.")
    if not 0 <= options.warmup_records < options.num_records:
        raise UsageError("The value for --warmup-records must be at least 0 and less than --num-records.")


def _properties(options: argparse.Namespace) -> dict[str, str]:
    properties = load_client_config(options.command_config)
    for item in options.command_property:
        name, found, value = item.partition("=")
        if not found or not name:
            raise UsageError(f"Invalid property: {item}")
        properties[name] = value
    if options.bootstrap_server:
        properties["bootstrap.servers"] = options.bootstrap_server
    if not properties.get("bootstrap.servers"):
        raise UsageError(
            "At least one of --bootstrap-server, --command-property, --command-config is required."
        )
    properties.setdefault("client.id", "perf-producer-client")
    if options.transactional_id or options.transaction_duration_ms:
        default = f"performance-producer-{random.randrange(2**64):x}"
        properties["transactional.id"] = (
            options.transactional_id or properties.get("transactional.id") or default
        )
    if options.print_metrics:
        properties["statistics.interval.ms"] = "500"
    return properties


def _payload(options: argparse.Namespace) -> Callable[[int], bytes]:
    """Return a function from the number of a record to its payload."""
    if options.payload_monotonic:
        return lambda number: str(number).encode()
    if options.payload_file is not None:
        pieces = _read_payloads(options.payload_file, options.payload_delimiter)
        return lambda number: random.choice(pieces)
    return _random_letters(options.record_size)


def _random_letters(size: int) -> Callable[[int], bytes]:
    pool = os.urandom(POOL_SIZE).translate(bytes(65 + byte % 26 for byte in range(256)))
    pool *= 2 + size // POOL_SIZE

    def cut(number: int) -> bytes:
        begin = number * POOL_STEP % POOL_SIZE
        return pool[begin : begin + size]

    return cut


def _read_payloads(path: str, delimiter: str) -> list[bytes]:
    print(f"Reading payloads from: {os.path.abspath(path)}")
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise ToolError(f"Unable to read file {path}: {error.strerror}") from error
    if not content:
        raise ToolError(f"{path} is empty.")
    pieces = content.split(b"\n" if delimiter == "\\n" else delimiter.encode())
    while len(pieces) > 1 and not pieces[-1]:
        pieces.pop()
    print(f"Number of records read: {len(pieces)}")
    return pieces


class _Run:
    """Sends all records at the requested rate, in transactions if requested."""

    def __init__(
        self, options: argparse.Namespace, producer: Producer, payload: Callable[[int], bytes]
    ) -> None:
        self.failed = 0
        self._options = options
        self._producer = producer
        self._payload = payload
        self._stats = LatencyStats(options.num_records, options.reporting_interval, options.warmup_records)
        self._progress = ProgressLine(options.num_records)
        self._transaction_ms = options.transaction_duration_ms or DEFAULT_TRANSACTION_DURATION_MS
        self._transactional = bool(options.transactional_id or options.transaction_duration_ms)
        self._transaction_began = 0.0

    def send_all(self) -> None:
        if self._options.warmup_records:
            print(
                f"Warmup first {self._options.warmup_records} records. "
                "Steady state results will print after the complete test summary."
            )
        if self._transactional:
            self._in_transaction(self._producer.init_transactions)
        try:
            for number in range(self._options.num_records):
                if self._transactional:
                    self._advance_transaction()
                self._send(self._payload(number))
                if self._options.throughput >= 0:
                    self._throttle(number + 1)
            if self._transactional:
                self._in_transaction(self._producer.commit_transaction)
            while self._producer.flush(0.2):
                self._progress.update(self._stats.count, self._stats.size)
        finally:
            self._progress.clear()
        self._stats.print_total()

    def _send(self, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(self._options.topic, value, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(0.05)
                self._progress.update(self._stats.count, self._stats.size)
            else:
                self._producer.poll(0)
                return

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            line = self._stats.record(message.latency() * 1000, len(message))
            if line is not None:
                self._progress.clear()
                print(line, flush=True)
            return
        self.failed += 1
        if self.failed <= 10:
            warn(f"Error when sending: {describe_error(error)}")

    def _throttle(self, sent: int) -> None:
        """Wait while more records were sent than --throughput allows."""
        while True:
            ahead = sent / max(self._options.throughput, 1e-9) - self._stats.elapsed_seconds()
            if ahead <= 0:
                return
            self._producer.poll(min(ahead, 0.1))
            self._progress.update(self._stats.count, self._stats.size)

    def _advance_transaction(self) -> None:
        """Commit a transaction whose duration is over; begin one if none is open."""
        now = time.monotonic()
        if self._transaction_began and (now - self._transaction_began) * 1000 >= self._transaction_ms:
            self._in_transaction(self._producer.commit_transaction)
            self._transaction_began = 0.0
        if not self._transaction_began:
            self._in_transaction(self._producer.begin_transaction)
            self._transaction_began = now

    def _in_transaction(self, step: Callable[[], object]) -> None:
        from confluent_kafka import KafkaException

        try:
            step()
        except KafkaException as error:
            raise ToolError(f"The transaction failed: {describe_error(error.args[0])}") from error
