"""Records as files: export as lines of JSON, and import of such lines."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.responses import StreamingResponse

from moldau.base.clock import SystemClock
from moldau.console.cluster.snapshot import Topic
from moldau.console.pages.following import Filter
from moldau.console.pages.messages import Choice, decoder_of, shown
from moldau.console.records import reading
from moldau.console.records.producing import NewRecord, produce
from moldau.console.records.reading import MOST_BYTES, Row
from moldau.console.web.call import Call, Done
from moldau.console.web.forms import InvalidField
from moldau.http.requests import read_body

_MOST_EXPORTED: Final = 100_000
_MOST_IMPORTED: Final = 50_000
_CLOCK: Final = SystemClock()


async def export(call: Call) -> StreamingResponse:
    """Send the records that match the filter as lines of JSON, as they are read."""
    topic = await call.topic()
    choice, wanted = Choice(call, topic), Filter(call)
    name = "".join(each if each.isalnum() or each in "._-" else "_" for each in topic.name)
    return StreamingResponse(
        _lines(call, topic, choice, wanted),
        media_type="application/x-ndjson",
        headers={"content-disposition": f'attachment; filename="{name}.jsonl"'},
    )


async def _lines(call: Call, topic: Topic, choice: Choice, wanted: Filter) -> AsyncIterator[str]:
    count = 0
    scanning = reading.scan(
        call.view.cluster, topic.name, choice.partitions, choice.start, wanted.may_match, wanted.select
    )
    async for _, rows in scanning:
        for row in await wanted.matching(rows):
            yield json.dumps(await _line(call, row), ensure_ascii=False) + "\n"
            count += 1
            if count >= _MOST_EXPORTED:
                return


async def _line(call: Call, row: Row) -> dict[str, Any]:
    """Text stays text, bytes are base64; values that are decoded or masked are exported as they are shown."""
    line: dict[str, Any] = {
        "partition": row.partition,
        "offset": row.offset,
        "timestamp": row.timestamp,
        "headers": {},
    }
    visible = await shown(call, row, most=MOST_BYTES)
    decoder = decoder_of(call)
    for name, data in (("key", row.key), ("value", row.value)):
        decoded = await decoder.decode(data, row.headers, key=name == "key")
        if decoded.format == "null":
            line[name] = None
        elif decoded.format == "bytes" and data is not None and not call.settings.masked:
            line[f"{name}_base64"] = base64.b64encode(data).decode()
        else:
            line[name] = decoded.text
    line["headers"] = dict(visible["headers"])
    return line


async def import_records(call: Call) -> Done:
    """Write the records of a file: lines of JSON as `export` writes them; any other line is a value."""
    topic = await call.topic()
    body = await read_body(call.request.scope, call.request.receive, call.settings.max_request_bytes)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidField(f"The file is not UTF-8 (byte {error.start}).") from None
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        raise InvalidField("The file is empty.")
    if len(lines) > _MOST_IMPORTED:
        raise InvalidField(f"The file has {len(lines)} lines; at most {_MOST_IMPORTED} are imported at once.")
    records = [_record(line, number) for number, line in enumerate(lines, 1)]
    await produce(call.view.settings, topic.name, len(topic.partitions), records, _CLOCK.time_ms())
    await call.view.refreshed()
    return Done(f"{len(records)} records are imported.", None, {"records": len(records)}, 201)


def _record(line: str, number: int) -> NewRecord:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return NewRecord(None, line.rstrip("\r").encode())
    if not isinstance(value, dict) or not value.keys() & {"value", "value_base64"}:
        return NewRecord(None, line.rstrip("\r").encode())
    headers = value.get("headers") or {}
    if not isinstance(headers, dict):
        raise InvalidField(f"Line {number}: headers must be an object.")
    return NewRecord(
        _field(value, "key", number),
        _field(value, "value", number),
        tuple((str(name), None if each is None else str(each).encode()) for name, each in headers.items()),
    )


def _field(value: dict[str, Any], name: str, number: int) -> bytes | None:
    encoded = value.get(f"{name}_base64")
    if encoded is not None:
        try:
            return base64.b64decode(str(encoded), validate=True)
        except ValueError:
            raise InvalidField(f"Line {number}: {name}_base64 is not base64.") from None
    found = value.get(name)
    if found is None:
        return None
    return (found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)).encode()
