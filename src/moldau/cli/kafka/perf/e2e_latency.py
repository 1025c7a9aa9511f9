"""kafka-e2e-latency: measure the time from sending a record to consuming it, one record at a time."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.console.reading import failed
from moldau.cli.shared.arguments import ToolParser, UsageError, require
from moldau.cli.shared.connection import (
    add_bootstrap_options,
    bootstrap_servers,
    load_client_config,
    open_admin,
)
from moldau.cli.shared.java import java_double
from moldau.cli.shared.librdkafka import describe_error, open_consumer, open_producer
from moldau.cli.shared.tool import ToolError, interrupted_by_sigterm, run_tool

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

REQUIRED = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size")
TIMEOUT_SECONDS = 60.0
REPORT_EVERY = 1000


def main(argv: Sequence[str] | None = None) -> int:
    import sys

    return run_tool(_parser, _execute, named_arguments(sys.argv[1:] if argv is None else argv))


def _parser() -> ToolParser:
    parser = ToolParser("kafka-e2e-latency")
    add_bootstrap_options(parser)
    parser.option("--topic", "TOPIC", "REQUIRED: the topic, which is created if it does not exist.")
    parser.option("--num-records", "COUNT", "REQUIRED: the number of records to send.", type=int)
    parser.option("--producer-acks", "ACKS", "REQUIRED: acks of the producer, 1 or all.")
    parser.option("--record-size", "BYTES", "REQUIRED: the size of values in bytes.", type=int)
    for name, text in (
        ("record-key-size", "The size of keys in bytes; 0 (the default) for records without keys."),
        ("record-header-key-size", "The size of header keys in bytes (0 by default)."),
        ("record-header-size", "The size of header values in bytes; -1 for null (0 by default)."),
        ("num-headers", "The number of headers of each record (0 by default)."),
    ):
        parser.option(f"--{name}", "NUMBER", text, type=int, nargs="?", const=0, default=0)
    return parser


def named_arguments(argv: Sequence[str]) -> list[str]:
    """Convert the positional arguments of older Kafka releases to named ones."""
    arguments = list(argv)
    if not arguments or any(argument.startswith("--") for argument in arguments) or arguments == ["-h"]:
        return arguments
    names = [*REQUIRED, "command-config"]
    if len(arguments) not in (len(REQUIRED), len(names)):
        return arguments
    print("WARNING: positional arguments are deprecated. Use --" + ", --".join(names))
    return [word for name, value in zip(names, arguments, strict=False) for word in (f"--{name}", value)]


def _execute(options: argparse.Namespace) -> None:
    _check(options)
    properties = load_client_config(options.command_config)
    properties["bootstrap.servers"] = bootstrap_servers(options) or ""
    _ensure_topic(options)
    group = {"group.id": f"test-group-{time.time_ns() // 1_000_000}", "enable.auto.commit": "false"}
    consumer = open_consumer({**properties, **group, "auto.offset.reset": "latest"})
    producer = open_producer({**properties, "linger.ms": "0", "acks": options.producer_acks})
    try:
        with interrupted_by_sigterm():
            _seek_to_end(consumer, options.topic)
            Measurement(options, producer, consumer).run()
    finally:
        consumer.close()


def _check(options: argparse.Namespace) -> None:
    bootstrap_servers(options)
    require(options, "topic", "producer-acks")
    for name in ("num_records", "record_size"):
        if getattr(options, name) is None:
            raise UsageError(f'Missing required argument "[{name.replace("_", "-")}]"')
    if options.producer_acks not in ("1", "all"):
        raise UsageError(
            "Invalid value for --producer-acks. Latency testing requires synchronous acknowledgement. "
            "Please use '1' or 'all'."
        )
    if options.num_records <= 0:
        raise UsageError("Value for --num-records must be a positive integer.")
    for name in ("record-size", "record-key-size", "record-header-key-size", "num-headers"):
        if getattr(options, name.replace("-", "_")) < 0:
            raise UsageError(f"Value for --{name} must be a non-negative integer.")
    if options.record_header_size < -1:
        raise UsageError(
            "Value for --record-header-size must be a non-negative integer or -1 for null header value."
        )


def _ensure_topic(options: argparse.Namespace) -> None:
    from moldau.client.admin.topic_types import NewTopic

    with open_admin(options) as admin:
        if options.topic in admin.list_topics():
            return
        print(
            f'Topic "{options.topic}" does not exist. '
            "Will create topic with 1 partition(s) and replication factor = 1"
        )
        error = admin.create_topics([NewTopic(options.topic, 1, 1)])[options.topic]
        if error is not None:
            print(f"Creation of topic {options.topic} failed")
            raise error


def _seek_to_end(consumer: Consumer, topic: str) -> None:
    """Assign all partitions at their current log end offsets."""
    from confluent_kafka import KafkaException, TopicPartition

    try:
        found = consumer.list_topics(topic, timeout=TIMEOUT_SECONDS).topics[topic].partitions
        partitions = [TopicPartition(topic, partition) for partition in found]
        for partition in partitions:
            _, partition.offset = consumer.get_watermark_offsets(partition, timeout=TIMEOUT_SECONDS)
        consumer.assign(partitions)
    except KafkaException as error:
        reason = describe_error(error.args[0])
        raise ToolError(f"Cannot find the log end offsets of {topic}: {reason}") from error


class Measurement:
    def __init__(self, options: argparse.Namespace, producer: Producer, consumer: Consumer) -> None:
        self._options = options
        self._producer = producer
        self._consumer = consumer
        self._random = random.Random(0)

    def run(self) -> None:
        latencies_ns = []
        for number in range(self._options.num_records):
            latencies_ns.append(self._round_trip())
            if number % REPORT_EVERY == 0:
                print(f"{number}\t{java_double(latencies_ns[-1] / 1e6)}", flush=True)
        print(f"Avg latency: {sum(latencies_ns) / len(latencies_ns) / 1e6:.4f} ms")
        whole = sorted(latency // 1_000_000 for latency in latencies_ns)
        p50, p99, p999 = (whole[int(len(whole) * share)] for share in (0.5, 0.99, 0.999))
        print(f"Percentiles: 50th = {p50}, 99th = {p99}, 99.9th = {p999}")

    def _round_trip(self) -> int:
        options = self._options
        key = self._letters(options.record_key_size) if options.record_key_size else None
        value = self._letters(options.record_size)
        headers = [self._header() for _ in range(options.num_headers)]
        begin = time.perf_counter_ns()
        failures: list[Any] = []
        self._producer.produce(
            options.topic, value, key, headers=headers, on_delivery=lambda error, _: failures.append(error)
        )
        self._producer.flush()
        if failures and failures[0] is not None:
            raise ToolError(f"The record could not be sent: {describe_error(failures[0])}")
        message = self._receive()
        elapsed = time.perf_counter_ns() - begin
        compare((key, value, headers), (message.key(), message.value(), message.headers() or []))
        return elapsed

    def _receive(self) -> Any:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            message = self._consumer.poll(deadline - time.monotonic())
            if message is not None and not failed(message):
                return message
        timeout_ms = int(TIMEOUT_SECONDS * 1000)
        raise ToolError(f"poll() timed out before finding a result (timeout:[{timeout_ms}ms])")

    def _header(self) -> tuple[str, str | bytes | None]:
        size = self._options.record_header_size
        key = self._letters(self._options.record_header_key_size).decode()
        return key, None if size < 0 else self._letters(size)

    def _letters(self, size: int) -> bytes:
        return bytes([self._random.randrange(26) + 65]) * size


def compare(sent: tuple[Any, Any, Any], read: tuple[Any, Any, Any]) -> None:
    """Raise an error unless the consumed record equals the one that was sent."""
    for what, ours, theirs in zip(("key", "value", "header"), sent, read, strict=True):
        if ours != theirs:
            raise ToolError(
                f"The message {what} read [{theirs}] did not match the message {what} sent [{ours}]"
            )
