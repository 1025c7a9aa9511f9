"""kafka-console-producer: send the lines of standard input as records."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.console.line_reader import LineReader, LineRecord
from moldau.cli.kafka.console.session import ReportOnce, check_reachable, ends_on_sigterm
from moldau.cli.shared.arguments import ToolParser, UsageError, key_values, require
from moldau.cli.shared.librdkafka import describe_error, open_producer
from moldau.cli.shared.tool import (
    ToolError,
    add_bootstrap_options,
    bootstrap_servers,
    load_config,
    run_tool,
    warn,
)

if TYPE_CHECKING:
    from confluent_kafka import Producer

#: Options that stand for a setting of the producer, with Kafka's name of it.
_SETTINGS = {
    "timeout": "linger.ms",
    "request_required_acks": "acks",
    "request_timeout_ms": "request.timeout.ms",
    "message_send_max_retries": "retries",
    "retry_backoff_ms": "retry.backoff.ms",
    "socket_buffer_size": "send.buffer.bytes",
    "max_memory_bytes": "buffer.memory",
    "batch_size": "batch.size",
    "max_partition_memory_bytes": "batch.size",
    "metadata_expiry_ms": "metadata.max.age.ms",
}
LINE_READERS = ("LineMessageReader", "org.apache.kafka.tools.LineMessageReader")


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-console-producer", "Send the lines of standard input as records.", _notes)
    add_bootstrap_options(parser)
    parser.option("--topic", "TOPIC", "REQUIRED: the topic to send to.")
    parser.option("--reader-property", "K=V", "How to cut a line (see below).", action="append", default=[])
    parser.option("--property", "K=V", "The same, its older name.", action="append", dest="reader_property")
    parser.option("--reader-config", "FILE", "Properties file with the same.")
    parser.option("--line-reader", "CLASS", "Only LineMessageReader, the default.", default=LINE_READERS[0])
    parser.flag("--sync", "Wait for each record to be acknowledged before the next is read.")
    parser.option(
        "--compression-codec",
        "CODEC",
        "none, gzip, snappy, lz4 or zstd; gzip if no codec is named.",
        nargs="?",
        const="gzip",
    )
    parser.option("--request-required-acks", "ACKS", "acks: all or -1 (the default), 1, 0.")
    parser.option(
        "--timeout", "MS", "linger.ms: how long a record waits for company; 5 by default.", type=int
    )
    parser.option("--batch-size", "BYTES", "batch.size: the largest batch.", type=int)
    parser.option("--max-partition-memory-bytes", "BYTES", "The same, by its older name.", type=int)
    parser.option("--message-send-max-retries", "COUNT", "retries.", type=int)
    parser.option("--retry-backoff-ms", "MS", "retry.backoff.ms.", type=int)
    parser.option("--request-timeout-ms", "MS", "request.timeout.ms.", type=int)
    parser.option("--metadata-expiry-ms", "MS", "metadata.max.age.ms.", type=int)
    parser.option("--max-block-ms", "MS", "How long to wait for room in it.", type=int, default=60_000)
    parser.option("--max-memory-bytes", "BYTES", "buffer.memory: room for records to be sent.", type=int)
    parser.option("--socket-buffer-size", "BYTES", "send.buffer.bytes.", type=int)
    parser.option("--command-property", "K=V", "A setting of the producer.", action="append", default=[])
    parser.hidden("--producer-property", action="append", dest="command_property")
    parser.hidden("--producer.config", dest="command_config")
    return parser


def _notes() -> str:
    return (
        "reader properties:\n"
        "  parse.key=true             key<TAB>value\n"
        "  parse.headers=true         h1:v1,h2:v2<TAB>value, and with parse.key\n"
        "                             h1:v1,h2:v2<TAB>key<TAB>value\n"
        "  key.separator, headers.delimiter (TAB), headers.separator (,), headers.key.separator (:)\n"
        "  null.marker=TEXT           a key, value or header value that is exactly TEXT is null\n"
        "  ignore.error=true          send lines without separator as value"
    )


def _execute(options: argparse.Namespace) -> int:
    require(options, "topic")
    if options.line_reader not in LINE_READERS:
        raise UsageError(f"--line-reader {options.line_reader}: classes of Java cannot be used here")
    reader = LineReader(load_config(options.reader_config) | key_values(options.reader_property))
    properties = _properties(options)
    check_reachable(properties, options.topic)
    sender = _Sender(
        open_producer(properties, error_cb=ReportOnce()), options.topic, options.max_block_ms / 1000
    )
    with ends_on_sigterm():
        try:
            for line in _lines():
                sender.send(reader.parse(line))
                if options.sync:
                    sender.finish()
                    sender.raise_first()
        finally:
            sender.finish()
    return 1 if sender.errors else 0


def _properties(options: argparse.Namespace) -> dict[str, str]:
    properties = load_config(options.command_config) | key_values(options.command_property)
    properties["bootstrap.servers"] = bootstrap_servers(options) or ""
    properties.setdefault("client.id", "console-producer")
    if options.compression_codec is not None:
        properties["compression.type"] = options.compression_codec
    for option, name in _SETTINGS.items():
        value = getattr(options, option)
        if value is not None:
            properties[name] = str(value)
    properties.setdefault("acks", "-1")
    properties.setdefault("delivery.timeout.ms", "120000")
    # One request at a time keeps the order of lines when one is sent again; idempotence would as well, but it
    # makes librdkafka wait half a second for its producer id.
    properties.setdefault("max.in.flight.requests.per.connection", "1")
    return properties


def _lines() -> Iterator[bytes]:
    """The lines of standard input without their ends; a prompt where a person types them."""
    prompt = sys.stdin.isatty() and sys.stdout.isatty()
    stdin = sys.stdin.buffer
    while True:
        if prompt:
            sys.stdout.write(">")
            sys.stdout.flush()
        line = stdin.readline()
        if not line:
            return
        yield line.removesuffix(b"\n").removesuffix(b"\r")


class _Sender:
    """Hands records to librdkafka and keeps what became of them."""

    def __init__(self, producer: Producer, topic: str, max_block_seconds: float) -> None:
        self.errors: list[str] = []
        self._producer = producer
        self._topic = topic
        self._max_block_seconds = max_block_seconds

    def send(self, record: LineRecord) -> None:
        deadline = time.monotonic() + self._max_block_seconds
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    key=record.key,
                    value=record.value,
                    headers=record.headers,  # type: ignore[arg-type]
                    on_delivery=self._delivered,
                )
            except BufferError:
                if time.monotonic() > deadline:
                    raise ToolError(
                        f"The buffer was full for {self._max_block_seconds * 1000:.0f} ms: "
                        "the broker does not take the records quickly enough (--max-memory-bytes)."
                    ) from None
                self._producer.poll(0.1)
            else:
                self._producer.poll(0)
                return

    def finish(self) -> None:
        """Wait until everything sent is acknowledged or given up."""
        while self._producer.flush(1.0):
            pass

    def raise_first(self) -> None:
        if self.errors:
            raise ToolError(self.errors[0])

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            return
        key, value = message.key(), message.value()
        shown_key = "null" if key is None else f"{len(key)} bytes"
        shown_value = "null" if value is None else f"{len(value)} bytes"
        self.errors.append(
            f"Error when sending message to topic {message.topic()} with key: {shown_key}, "
            f"value: {shown_value} with error: {describe_error(error)}"
        )
        warn(self.errors[-1])
