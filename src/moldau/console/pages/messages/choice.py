"""What a request wants to see of a topic: where to read, which records match, and how they are shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from moldau.base.clock import SystemClock
from moldau.base.loop_slice import LoopSlice
from moldau.console.cluster.snapshot import Topic
from moldau.console.pages.resets import parse_time
from moldau.console.records.decoding import Decoded, TopicDecoder
from moldau.console.records.filters import MAX_LENGTH, Predicate, compile_expression
from moldau.console.records.reading import NEWEST, OFFSET, STARTS, TIME, Position, Row, Start
from moldau.console.web.call import Call, not_found
from moldau.console.web.forms import InvalidField, checked_number

LIMIT: Final = 50
MAX_LIMIT: Final = 500
#: Characters of a value in the table; the page of a record shows all.
SHOWN: Final = 1000
_CLOCK: Final = SystemClock()


class Choice:
    """Where a page reads: the fields of its form, from the query."""

    def __init__(self, call: Call, topic: Topic) -> None:
        self.kind = call.query("start", NEWEST).strip().lower() or NEWEST
        if self.kind not in STARTS:
            raise InvalidField(f"Start must be one of: {', '.join(STARTS)}.")
        self.offset = call.query("offset")
        self.time = call.query("time")
        self.partition = call.query("partition")
        self.limit = checked_number(
            call.query("limit") or str(LIMIT), "Number of messages", least=1, most=MAX_LIMIT
        )
        self.filter = call.query("filter")
        self.expression = call.query("expression")
        #: Where an earlier search has ended, as `PARTITION:OFFSET`.
        self.after = _position(call.query("after"))
        at = 0
        if self.kind == OFFSET:
            at = checked_number(self.offset or "0", "Offset")
        elif self.kind == TIME:
            at = parse_time(self.time) if self.time else 0
        self.start = Start(self.kind, at)
        count = len(topic.partitions)
        if self.partition:
            index = checked_number(self.partition, "Partition", most=2**31 - 1)
            if index >= count:
                raise not_found(f"Partition {index} of topic {topic.name}")
            self.partitions = [index]
        else:
            self.partitions = list(range(count))

    @property
    def filtered(self) -> bool:
        return bool(self.filter or self.expression)


class Filter:
    """Text and an expression; a record must match both."""

    def __init__(self, call: Call, topic: Topic) -> None:
        self._decoder = decoder_of(call, topic)
        self.text = call.query("filter")[:MAX_LENGTH].casefold()
        expression = call.query("expression").strip()
        self._expression: Predicate | None = compile_expression(expression) if expression else None
        self._everything = not self.text and self._expression is None

    @property
    def may_match(self) -> Callable[[bytes], bool] | None:
        """Return a quick test of a batch's bytes: text that is not in them is in none of the records."""
        if not self.text or not self.text.isascii() or not self._decoder.plain or self._decoder.rules:
            return None
        if '"' in self.text or "\\" in self.text or not self.text.isprintable() or _could_be_hex(self.text):
            return None
        pattern = re.compile(re.escape(self.text.encode()), re.IGNORECASE)
        return lambda payload: pattern.search(payload) is not None

    @property
    def select(self) -> Callable[[Row], bool] | None:
        """Return a test of records that needs no registry, so that it can run in a thread."""
        if not self._decoder.plain or self._everything:
            return None
        decode = self._decoder.decode_plain
        return lambda row: self._decide(
            row,
            decode(row.key, key=True, complete=row.key_complete),
            decode(row.value, complete=row.value_complete),
        )

    async def matching(self, rows: list[Row]) -> list[Row]:
        """Return the rows that match; those that `select` has chosen are not tested again."""
        if self._decoder.plain or self._everything:
            return rows
        found = []
        loop_slice = LoopSlice(_CLOCK)
        for row in rows:
            if self._decide(row, *await decoded(self._decoder, row)):
                found.append(row)
            await loop_slice.pause()
        return found

    def _decide(self, row: Row, key: Decoded, value: Decoded) -> bool:
        headers = self._headers(row)
        if self.text and not (
            self.text in value.text.casefold()
            or self.text in key.text.casefold()
            or any(self.text in name.casefold() or self.text in each.casefold() for name, each in headers)
        ):
            return False
        if self._expression is None:
            return True
        fields: dict[str, Any] = {
            "key": key.value,
            "value": value.value,
            # Of headers with the same name, the last one, as Kafka's lastHeader returns it.
            "headers": dict(headers),
            "partition": row.partition,
            "offset": row.offset,
            "timestamp": row.timestamp,
            "size": row.key_size + row.value_size,
        }
        return bool(self._expression(fields))

    def _headers(self, row: Row) -> list[tuple[str, str]]:
        if self._decoder.rules:
            return [(name, self._decoder.header(name, each) or "") for name, each in row.headers]
        return [(name, (each or b"").decode("utf-8", "replace")) for name, each in row.headers]


def decoder_of(call: Call, topic: Topic) -> TopicDecoder:
    return call.services.decoder.of(topic.name)


async def decoded(decoder: TopicDecoder, row: Row) -> tuple[Decoded, Decoded]:
    """Return key and value."""
    key = await decoder.decode(row.key, row.headers, key=True, complete=row.key_complete)
    return key, await decoder.decode(row.value, row.headers, complete=row.value_complete)


async def shown(decoder: TopicDecoder, row: Row) -> dict[str, Any]:
    """Return a record as the table and JSON show it."""
    row = row.cut()
    return document(decoder, row, *await decoded(decoder, row), most=SHOWN)


def document(decoder: TopicDecoder, row: Row, key: Decoded, value: Decoded, *, most: int) -> dict[str, Any]:
    """Return a record with at most so many characters of its key and value."""
    return {
        "partition": row.partition,
        "offset": row.offset,
        "timestamp": row.timestamp,
        "key": _beginning(key, most, complete=row.key_complete),
        "value": _beginning(value, most, complete=row.value_complete),
        "headers": [[name, decoder.header(name, each)] for name, each in row.headers],
        "key_size": row.key_size,
        "value_size": row.value_size,
    }


def _beginning(decoded: Decoded, most: int, *, complete: bool) -> dict[str, Any]:
    return {
        "format": decoded.format,
        "text": decoded.text[:most],
        "cut": len(decoded.text) > most or (not complete and decoded.hidden is None),
        "schema_id": decoded.schema_id,
        "error": decoded.error,
        "hidden": decoded.hidden,
    }


def _position(text: str) -> Position | None:
    if not text:
        return None
    partition, _, offset = text.partition(":")
    label = "after, which is PARTITION:OFFSET,"
    return Position(checked_number(partition, label, most=2**31 - 1), checked_number(offset, label))


def _could_be_hex(text: str) -> bool:
    """Return whether text may be in bytes as they are shown: two hexadecimal digits, separated by spaces."""
    return all(each in "0123456789abcdef " for each in text)
