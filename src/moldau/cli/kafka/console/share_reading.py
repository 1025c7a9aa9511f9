"""Print the records of a share group: poll, print, acknowledge.

Invariant: a record is acknowledged after it was printed. Records that were fetched but not printed are
released when the consumer is closed, for whatever reason.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Mapping, Sequence

from moldau.cli.kafka.console.formatters import ConsoleRecord, Formatter
from moldau.cli.shared.tool import ToolError, warn
from moldau.client.share.consumer import ShareConsumer
from moldau.client.share.session import ACCEPT, REJECT, RELEASE, FetchLimits, ShareRecord
from moldau.client.wire.settings import ClientSettings

POLL_SECONDS = 0.5


def print_records(properties: Mapping[str, str], topic: str, printer: Printer) -> None:
    """Join the group that the properties name and print records."""
    settings = ClientSettings.from_properties(properties)
    limits = FetchLimits.from_properties(properties)
    try:
        asyncio.run(_run(ShareConsumer(settings, properties["group.id"], [topic], limits), printer))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _run(consumer: ShareConsumer, printer: Printer) -> None:
    """Print until the limit or the timeout; Ctrl-C and SIGTERM cancel, and the consumer leaves the group."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        if task is not None:
            loop.add_signal_handler(number, task.cancel)
    async with consumer:
        await printer.run(consumer)


class Printer:
    """Prints and acknowledges records as the options specify."""

    def __init__(self, options: argparse.Namespace, formatter: Formatter) -> None:
        self.count = 0
        self._format = formatter.format
        self._kind = REJECT if options.reject else RELEASE if options.release else ACCEPT
        self._reject_errors: bool = options.reject_message_on_error
        self._limit: int = -1 if options.max_messages is None else options.max_messages
        unlimited = options.timeout_ms is None or options.timeout_ms < 0
        self._timeout = float("inf") if unlimited else options.timeout_ms / 1000

    async def run(self, consumer: ShareConsumer) -> None:
        """Print until --max-messages is reached or no record arrives within --timeout-ms."""
        last = time.monotonic()
        while self._limit < 0 or self.count < self._limit:
            left = last + self._timeout - time.monotonic()
            records = await consumer.poll(max(0.0, min(POLL_SECONDS, left)))
            if records:
                self._handle(consumer, records if self._limit < 0 else records[: self._limit - self.count])
                last = time.monotonic()
            elif time.monotonic() - last >= self._timeout:
                return

    def _handle(self, consumer: ShareConsumer, records: Sequence[ShareRecord]) -> None:
        kinds: list[int] = []
        try:
            for record in records:
                self.count += 1
                kinds.append(self._print(_console_record(record, consumer.topic_of(record))))
        finally:
            sys.stdout.buffer.flush()
            for record, kind in zip(records, kinds, strict=False):
                consumer.acknowledge(record, kind)

    def _print(self, record: ConsoleRecord) -> int:
        """Print a record and return the type of its acknowledgement."""
        try:
            sys.stdout.buffer.write(self._format(record))
        except ToolError as error:
            if not self._reject_errors:
                raise
            warn(f"Error processing message, rejecting this message: {error}")
            return REJECT
        return self._kind


def _console_record(record: ShareRecord, topic: str) -> ConsoleRecord:
    inner = record.record
    return ConsoleRecord(
        topic,
        record.partition,
        inner.offset,
        ("CreateTime", "LogAppendTime")[record.timestamp_type],
        inner.timestamp,
        inner.key,
        inner.value,
        inner.headers,
        record.delivery_count,
    )
