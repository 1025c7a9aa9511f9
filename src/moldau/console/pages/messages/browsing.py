"""The table of messages: a window of the topic, or what a filter finds in it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from moldau.base.errors import KafkaError
from moldau.console.cluster.snapshot import Topic
from moldau.console.pages.messages.choice import Choice, Filter, decoder_of, shown
from moldau.console.pages.messages.commands import copy_as
from moldau.console.pages.messages.writing import schema_choices
from moldau.console.pages.topics import topic_row
from moldau.console.records import reading
from moldau.console.records.reading import Position, Row
from moldau.console.web.call import Call, Page, Refused
from moldau.console.web.forms import InvalidField
from moldau.console.web.rendering import fragment
from moldau.console.web.streams import COMMENT, event, stream

#: A topic with more partitions is read only on request.
_MAX_UNASKED: Final = 50
_PROGRESS_S: Final = 0.25
_TAIL_S: Final = 0.5
_JSON_S: Final = 30.0


async def messages(call: Call) -> Page:
    topic = await call.topic()
    choice = Choice(call, topic)
    asked = "start" in call.request.query_params or len(topic.partitions) <= _MAX_UNASKED
    data: dict[str, Any] = {"topic": topic_row(topic), "messages": []}
    begin: Mapping[int, int] = {}
    if choice.filtered and call.wants_json:
        data |= await _found(call, topic, choice)
    elif asked and not choice.filtered:
        rows, begin = await reading.read_window(
            call.view.cluster, topic.name, choice.partitions, choice.start, choice.limit
        )
        decoder = decoder_of(call, topic)
        data["messages"] = [await shown(decoder, each) for each in rows]
    extra = {
        "choice": choice,
        "filtered": choice.filtered,
        "asked": asked,
        "schemas": await schema_choices(call),
        "partition_count": len(topic.partitions),
    }
    return Page("topic_messages", topic.name, data, extra, copy_as(call, topic, choice, begin))


async def search(call: Call) -> Response:
    """Search the whole topic; a stream of events, or JSON with what is found within half a minute."""
    topic = await call.topic()
    if call.wants_json:
        return JSONResponse(await _found(call, topic, Choice(call, topic)))
    return _streamed(call, topic, _search_events)


def _streamed(
    call: Call, topic: Topic, events: Callable[[Call, Topic, Choice, Filter], AsyncIterator[str]]
) -> Response:
    """Return a stream of events; fields that cannot be used are one, because pages see no other answer."""
    try:
        return stream(events(call, topic, Choice(call, topic), Filter(call, topic)))
    except (InvalidField, Refused) as error:
        return stream(_problem(error.message))


async def _problem(message: str) -> AsyncIterator[str]:
    yield event("problem", {"error": message})


async def _search_events(call: Call, topic: Topic, choice: Choice, wanted: Filter) -> AsyncIterator[str]:
    found, reported = 0, 0.0
    progress, after = reading.Progress(0, 0), None
    # The stream begins before the search does, which may wait for others.
    yield COMMENT
    try:
        async with call.services.searches.one():
            async for progress, rows in _scan(call, topic, choice, wanted):
                matching = await wanted.matching(rows)
                chosen = matching[: choice.limit - found]
                if chosen:
                    found += len(chosen)
                    yield event("rows", await _rendered(call, topic, chosen))
                if time.monotonic() - reported > _PROGRESS_S:
                    reported = time.monotonic()
                    yield event("progress", _progress(progress, found))
                if found >= choice.limit:
                    after = _next(progress, chosen, matching)
                    break
    except (KafkaError, InvalidField, Refused) as error:
        yield event("problem", {"error": str(error)})
    yield event("end", {**_progress(progress, found), "complete": after is None, "next": after})


async def _found(call: Call, topic: Topic, choice: Choice) -> dict[str, Any]:
    """Return what is found until the limit or the time is reached; `next` is where to continue."""
    wanted, decoder = Filter(call, topic), decoder_of(call, topic)
    rows: list[dict[str, Any]] = []
    progress, after = reading.Progress(0, 0), None
    async with call.services.searches.one():
        end = time.monotonic() + _JSON_S
        async for progress, found in _scan(call, topic, choice, wanted):
            matching = await wanted.matching(found)
            chosen = matching[: choice.limit - len(rows)]
            rows.extend([await shown(decoder, each) for each in chosen])
            if len(rows) >= choice.limit or time.monotonic() > end:
                after = _next(progress, chosen, matching)
                break
    return {"messages": rows, **_progress(progress, len(rows)), "next": after}


def _scan(
    call: Call, topic: Topic, choice: Choice, wanted: Filter
) -> AsyncIterator[tuple[reading.Progress, list[Row]]]:
    return reading.scan(
        call.view.cluster,
        topic.name,
        choice.partitions,
        choice.start,
        wanted.may_match,
        wanted.select,
        choice.after,
    )


def _next(progress: reading.Progress, chosen: list[Row], matching: list[Row]) -> str | None:
    """Return where a search continues; None if it has seen everything."""
    position = progress.next
    if len(chosen) < len(matching):
        position = Position(chosen[-1].partition, chosen[-1].offset + 1)
    elif progress.done >= progress.total:
        return None
    return f"{position.partition}:{position.offset}"


async def follow(call: Call) -> Response:
    """Stream new records, those that match the filter."""
    return _streamed(call, await call.topic(), _follow_events)


async def _follow_events(call: Call, topic: Topic, choice: Choice, wanted: Filter) -> AsyncIterator[str]:
    yield event("progress", {"done": 0, "total": 0, "found": 0})
    quiet = 0
    key = (topic.name, tuple(choice.partitions), choice.limit)

    def tail() -> AsyncIterator[list[Row]]:
        return reading.tail(call.view.cluster, topic.name, choice.partitions, _TAIL_S, choice.limit)

    try:
        async with call.services.follows.one(), aclosing(call.view.streams.follow(key, tail)) as following:
            async for rows in following:
                select = wanted.select
                chosen = rows if select is None else [each for each in rows if select(each)]
                matching = await wanted.matching(chosen)
                if matching:
                    yield event("rows", await _rendered(call, topic, matching[-choice.limit :]))
                quiet = 0 if matching else quiet + 1
                if quiet and quiet % 20 == 0:
                    yield COMMENT
    except (KafkaError, Refused) as error:
        yield event("problem", {"error": str(error)})


async def _rendered(call: Call, topic: Topic, rows: list[Row]) -> dict[str, Any]:
    decoder = decoder_of(call, topic)
    found = [await shown(decoder, each) for each in rows]
    html = fragment("parts/message_rows.html", messages=found, topic={"name": topic.name}, call=call)
    return {"html": html}


def _progress(progress: reading.Progress, found: int) -> dict[str, int]:
    return {"done": progress.done, "total": progress.total, "found": found}
