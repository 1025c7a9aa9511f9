"""kafka-verifiable-producer: produce increasing integers and print the result of each as JSON.

Retries are disabled, so the output tells exactly which records were acknowledged.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from moldau.cli.shared.arguments import ToolParser, UsageError, require
from moldau.cli.shared.connection import add_bootstrap_options, bootstrap_servers, load_client_config
from moldau.cli.shared.java import java_class
from moldau.cli.shared.json_io import print_event
from moldau.cli.shared.librdkafka import check_reachable, open_producer
from moldau.cli.shared.tool import interrupted_by_sigterm, run_tool

if TYPE_CHECKING:
    from confluent_kafka import Producer

ACKS = (0, 1, -1)


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-verifiable-producer")
    add_bootstrap_options(parser)
    parser.option("--topic", "TOPIC", "REQUIRED: the topic to produce to.")
    parser.option(
        "--max-messages", "COUNT", "Exit after this many records; -1 for no limit.", type=int, default=-1
    )
    parser.option(
        "--throughput",
        "RATE",
        "Send at most this many records per second; -1 for no limit.",
        type=int,
        default=-1,
    )
    parser.option(
        "--acks", "ACKS", "0, 1, or -1 for all in-sync replicas (the default).", type=int, default=-1
    )
    parser.option("--producer.config", "FILE", "DEPRECATED: use --command-config.")
    parser.option(
        "--message-create-time",
        "MS",
        "The timestamp of the first record in ms; later timestamps advance with the clock.",
        type=int,
    )
    parser.option("--value-prefix", "NUMBER", "Prefix each value with this number and a dot.", type=int)
    parser.option("--repeating-keys", "COUNT", "Use the keys 0 to COUNT-1 in turn.", type=int)
    return parser


def _execute(options: argparse.Namespace) -> None:
    require(options, "topic")
    if options.acks not in ACKS:
        raise UsageError(f"argument --acks: invalid choice: '{options.acks}' (choose from 0, 1, -1)")
    properties = _properties(options)
    check_reachable(properties, options.topic)
    Run(options, open_producer(properties)).send_all()


def _properties(options: argparse.Namespace) -> dict[str, str]:
    older = getattr(options, "producer.config")
    if older is not None and options.command_config is not None:
        raise UsageError("Options --producer.config and --command-config are mutually exclusive.")
    if older is not None:
        print("Option --producer.config is deprecated. Use --command-config instead.")
    fixed = {"bootstrap.servers": bootstrap_servers(options) or "", "acks": str(options.acks), "retries": "0"}
    return fixed | load_client_config(older or options.command_config)


class Run:
    def __init__(self, options: argparse.Namespace, producer: Producer) -> None:
        self._options = options
        self._producer = producer
        self._sent = 0
        self._acked = 0
        self._begin = time.monotonic()
        self._begin_ms = time.time_ns() // 1_000_000

    def send_all(self) -> None:
        """Send until --max-messages or a signal, then wait for outstanding acknowledgements."""
        print_event("startup_complete")
        limit = self._options.max_messages
        numbers = itertools.count() if limit < 0 else range(limit)
        keys = repeating_keys(self._options.repeating_keys)
        try:
            with interrupted_by_sigterm():
                for number in numbers:
                    self._send(next(keys), number)
                    self._keep_pace()
        finally:
            self._producer.flush()
            print_event("shutdown_complete")
            print_event(
                "tool_data",
                sent=self._sent,
                acked=self._acked,
                target_throughput=self._options.throughput,
                avg_throughput=self._acked / max(time.monotonic() - self._begin, 1e-3),
            )

    def _send(self, key: str | None, number: int) -> None:
        prefix = self._options.value_prefix
        value = str(number) if prefix is None else f"{prefix}.{number}"
        self._sent += 1

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                self._print_failure(key, value, error)
                return
            self._acked += 1
            print_event(
                "producer_send_success",
                key=key,
                value=value,
                offset=message.offset(),
                topic=message.topic(),
                partition=message.partition(),
            )

        from confluent_kafka import KafkaException

        try:
            self._produce(key, value, delivered)
        except KafkaException as error:
            self._print_failure(key, value, error.args[0])

    def _produce(self, key: str | None, value: str, delivered: Any) -> None:
        start = self._options.message_create_time
        more = {}
        if start is not None and start >= 0:
            more["timestamp"] = start + time.time_ns() // 1_000_000 - self._begin_ms
        while True:
            try:
                self._producer.produce(self._options.topic, value, key, on_delivery=delivered, **more)
            except BufferError:
                self._producer.poll(0.05)
            else:
                self._producer.poll(0)
                return

    def _print_failure(self, key: str | None, value: str, error: Any) -> None:
        from moldau.client.librdkafka.errors import client_error

        failure = client_error(error)
        print_event(
            "producer_send_error",
            key=key,
            value=value,
            topic=self._options.topic,
            exception=f"class {java_class(failure)}",
            message=failure.message,
        )

    def _keep_pace(self) -> None:
        """Wait while more records were sent than --throughput allows."""
        rate = self._options.throughput
        while rate >= 0:
            ahead = self._sent / max(rate, 1e-9) - (time.monotonic() - self._begin)
            if ahead <= 0:
                return
            self._producer.poll(min(ahead, 0.1))


def repeating_keys(count: int | None) -> Iterator[str | None]:
    """Yield the keys 0 to count - 1 in turn, or no keys without a count."""
    if count is None:
        return itertools.repeat(None)
    return map(str, itertools.cycle(range(count)) if count > 0 else itertools.count())
