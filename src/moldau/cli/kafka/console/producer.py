"""kafka-console-producer: send each line of standard input as a record."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.console.line_reader import LineReader, LineRecord
from moldau.cli.shared.arguments import ToolParser, UsageError, key_values, require
from moldau.cli.shared.connection import (
    add_bootstrap_options,
    bootstrap_servers,
    load_client_config,
    load_config,
)
from moldau.cli.shared.librdkafka import ReportOnce, check_reachable, describe_error, open_producer
from moldau.cli.shared.tool import ToolError, interrupted_by_sigterm, run_tool, warn

if TYPE_CHECKING:
    from confluent_kafka import Producer

#: Options that set a producer setting, and its name in Kafka.
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
    parser = ToolParser("kafka-console-producer", notes=_notes)
    add_bootstrap_options(parser)
    parser.option("--topic", "TOPIC", "REQUIRED: the topic to produce to.")
    parser.option(
        "--reader-property",
        "K=V",
        "A property of the line reader (see below). May be repeated.",
        action="append",
        default=[],
    )
    parser.option(
        "--property", "K=V", "DEPRECATED: use --reader-property.", action="append", dest="reader_property"
    )
    parser.option("--reader-config", "FILE", "Properties file with properties of the line reader.")
    parser.option(
        "--line-reader",
        "CLASS",
        "The line reader; LineMessageReader (the default) is the only one supported.",
        default=LINE_READERS[0],
    )
    parser.flag("--sync", "Wait for the acknowledgement of each record before reading the next line.")
    _add_producer_options(parser)
    parser.option(
        "--command-property", "K=V", "A producer setting. May be repeated.", action="append", default=[]
    )
    parser.hidden("--producer-property", action="append", dest="command_property")
    parser.hidden("--producer.config", dest="command_config")
    return parser


def _add_producer_options(parser: ToolParser) -> None:
    parser.option(
        "--compression-codec",
        "CODEC",
        "compression.type: none, gzip, snappy, lz4 or zstd; gzip without a value.",
        nargs="?",
        const="gzip",
    )
    parser.option("--request-required-acks", "ACKS", "acks: all or -1 (the default), 1, or 0.")
    parser.option(
        "--timeout",
        "MS",
        "linger.ms: wait at most this many ms for further records of a batch (5 by default).",
        type=int,
    )
    parser.option("--batch-size", "BYTES", "batch.size: the maximum size of a batch in bytes.", type=int)
    parser.option("--max-partition-memory-bytes", "BYTES", "DEPRECATED: use --batch-size.", type=int)
    parser.option(
        "--message-send-max-retries", "COUNT", "retries: the maximum number of retries of a record.", type=int
    )
    parser.option("--retry-backoff-ms", "MS", "retry.backoff.ms: ms to wait before a retry.", type=int)
    parser.option(
        "--request-timeout-ms",
        "MS",
        "request.timeout.ms: ms to wait for the response to a request.",
        type=int,
    )
    parser.option(
        "--metadata-expiry-ms", "MS", "metadata.max.age.ms: ms after which metadata is refreshed.", type=int
    )
    parser.option(
        "--max-block-ms",
        "MS",
        "Fail if the buffer stays full for this many milliseconds (60000 by default).",
        type=int,
        default=60_000,
    )
    parser.option(
        "--max-memory-bytes", "BYTES", "buffer.memory: bytes of buffer for unsent records.", type=int
    )
    parser.option(
        "--socket-buffer-size", "BYTES", "send.buffer.bytes: size of the TCP send buffer in bytes.", type=int
    )


def _notes() -> str:
    return (
        "reader properties:\n"
        "  parse.key=true             key<TAB>value\n"
        "  parse.headers=true         h1:v1,h2:v2<TAB>value, and with parse.key\n"
        "                             h1:v1,h2:v2<TAB>key<TAB>value\n"
        "  key.separator, headers.delimiter (TAB), headers.separator (,), headers.key.separator (:)\n"
        "  null.marker=TEXT           a key, value or header value that equals TEXT is null\n"
        "  ignore.error=true          send a line without a separator as a value"
    )


def _execute(options: argparse.Namespace) -> int:
    require(options, "topic")
    if options.line_reader not in LINE_READERS:
        raise UsageError(f"--line-reader {options.line_reader}: Java classes are not supported")
    reader = LineReader(load_config(options.reader_config) | key_values(options.reader_property))
    properties = _properties(options)
    check_reachable(properties, options.topic)
    sender = _Sender(
        open_producer(properties, error_cb=ReportOnce()), options.topic, options.max_block_ms / 1000
    )
    with interrupted_by_sigterm():
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
    properties = load_client_config(options.command_config) | key_values(options.command_property)
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
    # One request in flight preserves the order of lines across retries. Idempotence would, too, but with it
    # librdkafka waits half a second for its producer id.
    properties.setdefault("max.in.flight.requests.per.connection", "1")
    return properties


def _lines() -> Iterator[bytes]:
    """Yield the lines of standard input without line endings; show a prompt on a terminal."""
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
    """Produces records with librdkafka and collects delivery errors."""

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
                        "the broker does not accept records fast enough (see --max-memory-bytes)."
                    ) from None
                self._producer.poll(0.1)
            else:
                self._producer.poll(0)
                return

    def finish(self) -> None:
        """Wait until every record is acknowledged or has failed."""
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
