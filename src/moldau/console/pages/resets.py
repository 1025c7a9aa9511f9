"""Resetting the offsets of a group: a preview first, then the commit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from starlette.responses import HTMLResponse, JSONResponse, Response

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin.group_types import GroupListing
from moldau.client.admin.offsets import ListedOffset, OffsetSpec
from moldau.client.admin.share_groups import alter_share_group_offsets_of, share_group_offsets
from moldau.client.records import OffsetAndMetadata
from moldau.console.pages.groups import group_listing
from moldau.console.web.call import Call, Done, Refused
from moldau.console.web.forms import Form, InvalidField, checked_number
from moldau.console.web.rendering import fragment
from moldau.lag.evaluation.observation import SHARE

_TARGETS: Final = ("beginning", "end", "offset", "time", "shift")
#: Partitions that a message names.
_MAX_NAMED: Final = 5
_IDLE: Final = frozenset({"empty", "dead", ""})


async def preview(call: Call) -> Response:
    """Return the table of new offsets; nothing is changed."""
    listing = await group_listing(call)
    rows = await _planned(call, listing, await call.form())
    if call.wants_json:
        return JSONResponse({"offsets": rows})
    return HTMLResponse(fragment("parts/new_offsets.html", offsets=rows))


async def reset(call: Call) -> Done:
    listing = await group_listing(call)
    name = listing.group_id
    if listing.type.lower() != SHARE:
        described = (await call.admin.describe_groups([name]))[name]
        state = listing.state if isinstance(described, KafkaError) else described.state
        if state.lower() not in _IDLE:
            raise Refused(
                409, f"Group {name} has members (state {state}). Stop them before you reset its offsets."
            )
    rows = await _planned(call, listing, await call.form())
    offsets = {TopicPartition(row["topic"], row["partition"]): row["new"] for row in rows if not row["error"]}
    left = [f"{row['topic']}-{row['partition']} ({row['error']})" for row in rows if row["error"]]
    if listing.type.lower() == SHARE:
        await alter_share_group_offsets_of(call.view.cluster, name, offsets)
    else:
        results = await call.admin.alter_group_offsets(name, offsets)
        for at, error in results.items():
            if error is not None:
                raise KafkaError(error.code, f"{at.topic}-{at.partition}: {error}")
    await call.view.refreshed()
    others = (
        f" Those of {len(left)} others are left as they are: {', '.join(left[:_MAX_NAMED])}." if left else ""
    )
    return Done(
        f"The offsets of group {name} are reset in {len(offsets)} partitions.{others}",
        call.url("groups", name),
        {"offsets": rows},
    )


async def _planned(call: Call, listing: GroupListing, form: Form) -> list[dict[str, Any]]:
    target = form.choice("to", "To", _TARGETS)
    committed = await _committed(call, listing)
    topic = form.text("topic")
    if topic:
        found = await call.topic(topic)
        committed = {
            TopicPartition(topic, each.index): committed.get(TopicPartition(topic, each.index))
            for each in found.partitions
        }
    if not committed:
        raise Refused(409, f"Group {listing.group_id} has no committed offsets; choose a topic.")
    at_time = parse_time(form.text("time", "Time")) if target == "time" else None
    starts = await _listed(call, dict.fromkeys(committed, int(OffsetSpec.EARLIEST)))
    ends = await _listed(call, dict.fromkeys(committed, int(OffsetSpec.LATEST)))
    times = {} if at_time is None else await _listed(call, dict.fromkeys(committed, at_time))
    rows = plan(target, form, committed, starts, ends, times)
    if all(row["error"] for row in rows):
        raise Refused(409, f"No partition of group {listing.group_id} can be read: {rows[0]['error']}.")
    return rows


def plan(
    target: str,
    form: Form,
    committed: Mapping[TopicPartition, int | None],
    starts: Mapping[TopicPartition, int | KafkaError],
    ends: Mapping[TopicPartition, int | KafkaError],
    times: Mapping[TopicPartition, int | KafkaError],
) -> list[dict[str, Any]]:
    """Return the new offset of each partition; an error instead for one that cannot be read."""
    rows = []
    for at, before in sorted(committed.items()):
        known = [each[at] for each in (starts, ends, times) if at in each]
        error = next((each for each in known if isinstance(each, KafkaError)), None)
        row = {"topic": at.topic, "partition": at.partition, "before": before, "new": None, "error": None}
        if error is None:
            start, end, *time = [each for each in known if isinstance(each, int)]
            new = _new(target, form, before, start, end, time[0] if time else -1)
            row["new"] = min(max(new, start), end)
        else:
            row["error"] = error.code.name
        rows.append(row)
    return rows


def _new(target: str, form: Form, before: int | None, start: int, end: int, at_time: int) -> int:
    if target == "beginning":
        return start
    if target == "offset":
        return form.number("offset", "Offset")
    if target == "time":
        return at_time if at_time >= 0 else end
    if target == "shift":
        most = 1 << 62
        return (start if before is None else before) + form.number(
            "shift", "Shift by", least=-most, most=most
        )
    return end


async def _committed(call: Call, listing: GroupListing) -> dict[TopicPartition, int | None]:
    if listing.type.lower() == SHARE:
        shares = await share_group_offsets(call.view.cluster, listing.group_id)
        return {at: each.start_offset for at, each in shares.items()}
    found = await call.admin.list_group_offsets(listing.group_id)
    return {at: each.offset for at, each in found.items() if isinstance(each, OffsetAndMetadata)}


async def _listed(call: Call, wanted: dict[TopicPartition, int]) -> dict[TopicPartition, int | KafkaError]:
    """Return offsets; an error for a partition that is gone or cannot be read."""
    answers = await call.admin.list_offsets(wanted)
    return {at: each.offset if isinstance(each, ListedOffset) else each for at, each in answers.items()}


def parse_time(text: str) -> int:
    """Return milliseconds since 1970 of a number, or of a date and time (UTC unless it has an offset)."""
    text = text.strip()
    if text.lstrip("-").isdigit():
        return checked_number(text, "Time")
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidField("Time must be like 2026-01-31T12:30:00, or milliseconds since 1970.") from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return max(0, int(found.timestamp() * 1000))
