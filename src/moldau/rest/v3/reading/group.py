"""Streaming reads as a member of a consumer group.

The proxy commits nothing by itself, because it cannot know what the client has processed: the client commits
(`commits`), and records after the committed offset are delivered again to the next member. So no record is
lost, and some may be read twice. The member leaves the group as soon as the connection is closed.
"""

from __future__ import annotations

from typing import Any

from moldau.rest.engine.patterns import subscription_of
from moldau.rest.errors import bad_request
from moldau.rest.request import Request
from moldau.rest.v3.reading.stream import RecordStream
from moldau.rest.v3.resources import checked_cluster


async def read_group(request: Request) -> None:
    await checked_cluster(request)
    topics = _topics(request)
    reset = request.query("from", "earliest")
    if reset not in ("earliest", "latest"):
        raise bad_request("from must be earliest or latest.")
    properties: dict[str, Any] = {
        "group.id": request.params["consumer_group_id"],
        "auto.offset.reset": reset,
    }
    stream = RecordStream(request)
    async with request.proxy.streams.consumer(request, properties) as consumer:
        consumer.subscribe(topics)
        await stream.serve(consumer)


def _topics(request: Request) -> list[str]:
    names = [each.strip() for each in request.query("topics").split(",") if each.strip()]
    pattern = request.query("pattern")
    if bool(names) == bool(pattern):
        raise bad_request("Give either topics, separated by commas, or pattern.")
    return [subscription_of(pattern)] if pattern else names
