"""Streams of records: all that match a filter, with progress, and new ones as they are written."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from moldau.base.clock import SystemClock
from moldau.base.errors import KafkaError
from moldau.base.loop_slice import LoopSlice
from moldau.console.cluster.snapshot import Topic
from moldau.console.pages.messages import Choice, decoder_of, shown
from moldau.console.records import reading
from moldau.console.records.decoding import Decoded
from moldau.console.records.filters import MOST_LENGTH, Predicate, compile_expression
from moldau.console.records.reading import Row
from moldau.console.web.call import Call
from moldau.console.web.forms import InvalidField
from moldau.console.web.rendering import fragment
from moldau.console.web.streams import COMMENT, event, stream

_PROGRESS_S: Final = 0.25
_TAIL_S: Final = 0.5
_JSON_S: Final = 30.0
_CLOCK: Final = SystemClock()


class Filter:
    """Text and an expression; a record must match both."""

    def __init__(self, call: Call) -> None:
        self._decoder = decoder_of(call)
        self.text = call.query("filter")[:MOST_LENGTH].casefold()
        expression = call.query("expression").strip()
        self._expression: Predicate | None = compile_expression(expression) if expression else None
        self._everything = not self.text and self._expression is None

    @property
    def may_match(self) -> Callable[[bytes], bool] | None:
        """Return a quick test of a batch's bytes: text that is not in them is in none of the records."""
        if not self.text or not self.text.isascii() or not self._decoder.plain or '"' in self.text:
            return None
        if "\\" in self.text or not self.text.isprintable() or _could_be_hex(self.text):
            return None
        pattern = re.compile(re.escape(self.text.encode()), re.IGNORECASE)
        return lambda payload: pattern.search(payload) is not None

    @property
    def select(self) -> Callable[[Row], bool] | None:
        """Return a test of records that needs no registry, so that it can run in a thread."""
        if not self._decoder.plain or self._everything:
            return None
        decode = self._decoder.decode_plain
        return lambda row: self._decide(row, decode(row.key), decode(row.value))

    async def matching(self, rows: list[Row]) -> list[Row]:
        """Return the rows that match; those that `select` has chosen are not tested again."""
        if self._decoder.plain or self._everything:
            return rows
        found = []
        loop_slice = LoopSlice(_CLOCK)
        for row in rows:
            key = await self._decoder.decode(row.key, row.headers, key=True)
            value = await self._decoder.decode(row.value, row.headers)
            if self._decide(row, key, value):
                found.append(row)
            await loop_slice.pause()
        return found

    def _decide(self, row: Row, key: Decoded, value: Decoded) -> bool:
        if self.text and not (
            self.text in value.text.casefold()
            or self.text in key.text.casefold()
            or any(
                self.text in name.casefold()
                or self.text in (each or b"").decode("utf-8", "replace").casefold()
                for name, each in row.headers
            )
        ):
            return False
        if self._expression is None:
            return True
        fields: dict[str, Any] = {
            "key": key.value,
            "value": value.value,
            "headers": {name: (each or b"").decode("utf-8", "replace") for name, each in row.headers},
            "partition": row.partition,
            "offset": row.offset,
            "timestamp": row.timestamp,
            "size": row.key_size + row.value_size,
        }
        return bool(self._expression(fields))


async def search(call: Call) -> Response:
    """Search the whole topic; a stream of events, or JSON with what is found within half a minute."""
    topic = await call.topic()
    choice, wanted = Choice(call, topic), Filter(call)
    if call.wants_json:
        return JSONResponse(await _found(call, topic, choice, wanted))
    return stream(_search_events(call, topic, choice, wanted))


async def _search_events(call: Call, topic: Topic, choice: Choice, wanted: Filter) -> AsyncIterator[str]:
    found, reported = 0, 0.0
    progress = reading.Progress(0, 0)
    scanning = reading.scan(
        call.view.cluster, topic.name, choice.partitions, choice.start, wanted.may_match, wanted.select
    )
    try:
        async for progress, rows in scanning:
            matching = (await wanted.matching(rows))[: choice.limit - found]
            if matching:
                found += len(matching)
                yield event("rows", await _rendered(call, topic, matching))
            if time.monotonic() - reported > _PROGRESS_S:
                reported = time.monotonic()
                yield event("progress", _progress(progress, found))
            if found >= choice.limit:
                break
    except (KafkaError, InvalidField) as error:
        yield event("problem", {"error": str(error)})
    complete = progress.done >= progress.total
    yield event("end", {**_progress(progress, found), "complete": complete})


async def _found(call: Call, topic: Topic, choice: Choice, wanted: Filter) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    progress = reading.Progress(0, 0)
    end = time.monotonic() + _JSON_S
    scanning = reading.scan(
        call.view.cluster, topic.name, choice.partitions, choice.start, wanted.may_match, wanted.select
    )
    async for progress, found in scanning:  # noqa: B007 (reported after the loop)
        matching = (await wanted.matching(found))[: choice.limit - len(rows)]
        rows.extend([await shown(call, each) for each in matching])
        if len(rows) >= choice.limit or time.monotonic() > end:
            break
    return {"messages": rows[: choice.limit], **_progress(progress, len(rows))}


async def follow(call: Call) -> Response:
    """Stream new records, those that match the filter."""
    topic = await call.topic()
    choice, wanted = Choice(call, topic), Filter(call)
    return stream(_follow_events(call, topic, choice, wanted))


async def _follow_events(call: Call, topic: Topic, choice: Choice, wanted: Filter) -> AsyncIterator[str]:
    yield event("progress", {"done": 0, "total": 0, "found": 0})
    quiet = 0
    try:
        async for rows in reading.tail(
            call.view.cluster, topic.name, choice.partitions, _TAIL_S, choice.limit
        ):
            select = wanted.select
            chosen = rows if select is None else [each for each in rows if select(each)]
            matching = await wanted.matching(chosen)
            if matching:
                yield event("rows", await _rendered(call, topic, matching[-choice.limit :]))
            quiet = 0 if matching else quiet + 1
            if quiet and quiet % 20 == 0:
                yield COMMENT
    except KafkaError as error:
        yield event("problem", {"error": str(error)})


async def _rendered(call: Call, topic: Topic, rows: list[Row]) -> dict[str, Any]:
    messages = [await shown(call, each) for each in rows]
    html = fragment("parts/message_rows.html", messages=messages, topic={"name": topic.name}, call=call)
    return {"html": html}


def _progress(progress: reading.Progress, found: int) -> dict[str, int]:
    return {"done": progress.done, "total": progress.total, "found": found}


def _could_be_hex(text: str) -> bool:
    """Return whether text may be in bytes as they are shown: two hexadecimal digits, separated by spaces."""
    return all(each in "0123456789abcdef " for each in text)
