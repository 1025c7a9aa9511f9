"""Executes PRINT, which shows the records of a topic without a stream over it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from moldau.client import Consumer, TopicPartition
from moldau.pipelines.sql.errors import SqlError, suggestion
from moldau.pipelines.sql.parse.statements import Print
from moldau.pipelines.sql.results import Result, Rows
from moldau.pipelines.sql.run.context import Context

_POLL_S = 0.2


def print_topic(context: Context, statement: Print) -> Result:
    name = statement.topic.name
    partitions = context.partitions(name)
    if partitions is None:
        known = [topic for topic, listing in context.admin.list_topics().items() if not listing.internal]
        hint = suggestion(name, known) or "SHOW TOPICS lists them."
        raise SqlError(f"Topic {name} does not exist", statement.topic.place, hint)
    assigned = [TopicPartition(name, index) for index in range(partitions)]
    rows = _records(dict(context.config), assigned, statement)
    return Rows(["rowtime", "key", "value", "partition", "offset"], rows, live=True)


def _records(
    config: dict[str, Any], partitions: list[TopicPartition], statement: Print
) -> Iterator[list[Any]]:
    reset = "earliest" if statement.from_beginning else "latest"
    consumer: Consumer[bytes, bytes] = Consumer({**config, "auto.offset.reset": reset})
    left, seen = statement.limit, 0
    try:
        consumer.assign(partitions)
        (consumer.seek_to_beginning if statement.from_beginning else consumer.seek_to_end)()
        while left is None or left > 0:
            for record in consumer.poll(_POLL_S):
                seen += 1
                if (seen - 1) % statement.interval or (left is not None and left <= 0):
                    continue
                left = None if left is None else left - 1
                yield [
                    _formatted_timestamp(record.timestamp),
                    readable(record.key),
                    readable(record.value),
                    record.partition,
                    record.offset,
                ]
    finally:
        consumer.close()


def _formatted_timestamp(milliseconds: int) -> str:
    if milliseconds < 0:
        return "N/A"
    timestamp = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{timestamp:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03}Z"


def readable(data: bytes | None) -> Any:
    """Show bytes as what they most likely are: text, an integer of four or eight bytes, or hexadecimal."""
    if data is None:
        return None
    try:
        text = data.decode()
        if text.isprintable() or not any(
            ord(character) < 32 and character not in "\n\r\t" for character in text
        ):
            return text
    except UnicodeDecodeError:
        pass
    return int.from_bytes(data, "big", signed=True) if len(data) in (4, 8) else f"0x{data.hex()}"
