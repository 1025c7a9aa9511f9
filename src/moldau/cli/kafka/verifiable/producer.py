"""kafka-verifiable-producer: send increasing numbers and tell, as JSON, what became of each.

Nothing is sent twice (`retries` is 0), so that whoever watches knows which records were acknowledged.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.console.session import check_reachable, ends_on_sigterm
from moldau.cli.kafka.verifiable.events import print_event
from moldau.cli.shared.arguments import ToolParser, UsageError, require
from moldau.cli.shared.java import java_class
from moldau.cli.shared.librdkafka import open_producer
from moldau.cli.shared.tool import add_bootstrap_options, bootstrap_servers, load_config, run_tool

if TYPE_CHECKING:
    from confluent_kafka import Producer

ACKS = (0, 1, -1)


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-verifiable-producer",
        "Send increasing numbers to a topic, and print a line of JSON for each that was acknowledged or not.",
    )
    add_bootstrap_options(parser)
    parser.option("--topic", "TOPIC", "REQUIRED: the topic.")
    parser.option("--max-messages", "COUNT", "How many to send; -1: until killed.", type=int, default=-1)
    parser.option("--throughput", "RATE", "About so many a second; -1: no limit.", type=int, default=-1)
    parser.option("--acks", "ACKS", "0, 1, or -1 for all in-sync replicas.", type=int, default=-1)
    parser.option("--producer.config", "FILE", "The same as --command-config, by its older name.")
    parser.option(
        "--message-create-time", "MS", "Timestamp of the first record; later ones count on.", type=int
    )
    parser.option("--value-prefix", "NUMBER", "Put this and a dot before each number.", type=int)
    parser.option("--repeating-keys", "COUNT", "Keys 0 to COUNT-1, over and over.", type=int)
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
    return fixed | load_config(older or options.command_config)


class Run:
    def __init__(self, options: argparse.Namespace, producer: Producer) -> None:
        self._options = options
        self._producer = producer
        self._sent = 0
        self._acked = 0
        self._begin = time.monotonic()
        self._begin_ms = time.time_ns() // 1_000_000

    def send_all(self) -> None:
        """Send until all are out or somebody ends us; what is under way is waited for."""
        print_event("startup_complete")
        limit = self._options.max_messages
        numbers = itertools.count() if limit < 0 else range(limit)
        keys = repeating_keys(self._options.repeating_keys)
        try:
            with ends_on_sigterm():
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
                self._tell_failure(key, value, error)
                return
            self._acked += 1
            place = {"offset": message.offset(), "topic": message.topic(), "partition": message.partition()}
            print_event("producer_send_success", key=key, value=value, **place)

        from confluent_kafka import KafkaException

        try:
            self._hand_over(key, value, delivered)
        except KafkaException as error:
            self._tell_failure(key, value, error.args[0])

    def _hand_over(self, key: str | None, value: str, delivered: Any) -> None:
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

    def _tell_failure(self, key: str | None, value: str, error: Any) -> None:
        from moldau.client.librdkafka import client_error

        failure = client_error(error)
        exception = f"class {java_class(failure)}"
        topic = self._options.topic
        told = {"exception": exception, "message": failure.message}
        print_event("producer_send_error", key=key, value=value, topic=topic, **told)

    def _keep_pace(self) -> None:
        """Wait while we are ahead of the rate."""
        rate = self._options.throughput
        while rate >= 0:
            ahead = self._sent / max(rate, 1e-9) - (time.monotonic() - self._begin)
            if ahead <= 0:
                return
            self._producer.poll(min(ahead, 0.1))


def repeating_keys(count: int | None) -> Iterator[str | None]:
    """0 to count - 1 over and over; no keys without a count."""
    if count is None:
        return itertools.repeat(None)
    return map(str, itertools.cycle(range(count)) if count > 0 else itertools.count())
