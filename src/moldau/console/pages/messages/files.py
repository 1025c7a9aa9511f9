"""Records as files: export as lines of JSON, and import of such lines. A round trip is exact."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.responses import StreamingResponse

from moldau.base.clock import SystemClock
from moldau.console.cluster.snapshot import Topic
from moldau.console.pages.messages.choice import Choice, Filter, decoded, decoder_of
from moldau.console.pages.messages.writing import from_base64, header_document, header_of
from moldau.console.records import reading
from moldau.console.records.decoding import Decoded, TopicDecoder
from moldau.console.records.producing import NewRecord, produce
from moldau.console.records.reading import Row
from moldau.console.web.call import Call, Done
from moldau.console.web.forms import InvalidField
from moldau.http.requests import read_body

_MAX_IMPORTED: Final = 50_000
_MAX_TIMESTAMP: Final = 1 << 62
_CLOCK: Final = SystemClock()


async def export(call: Call) -> StreamingResponse:
    """Send the records that match the filter as lines of JSON, as they are read."""
    topic = await call.topic()
    choice, wanted = Choice(call, topic), Filter(call, topic)
    lines = _lines(call, topic, choice, wanted)
    # It takes its place now, so that a refusal is not the end of a file.
    await anext(lines)
    name = "".join(each if each.isalnum() or each in "._-" else "_" for each in topic.name)
    return StreamingResponse(
        lines,
        media_type="application/x-ndjson",
        headers={"content-disposition": f'attachment; filename="{name}.jsonl"'},
    )


async def _lines(call: Call, topic: Topic, choice: Choice, wanted: Filter) -> AsyncIterator[str]:
    decoder = decoder_of(call, topic)
    scanning = reading.scan(
        call.view.cluster, topic.name, choice.partitions, choice.start, wanted.may_match, wanted.select
    )
    async with call.services.exports.one():
        yield ""
        async for _, rows in scanning:
            for row in await wanted.matching(rows):
                line = line_of(decoder, row, *await decoded(decoder, row))
                # Only ASCII, so that no value can be one that UTF-8 does not represent.
                yield json.dumps(line) + "\n"


def line_of(decoder: TopicDecoder, row: Row, key: Decoded, value: Decoded) -> dict[str, Any]:
    """Return the line of a record.

    Text is text, bytes are base64. Values with a schema are both: decoded to be read, base64 to be imported.
    In a topic with masked fields, all is as it is shown, and the line says so.
    """
    line: dict[str, Any] = {"partition": row.partition, "offset": row.offset, "timestamp": row.timestamp}
    if decoder.rules:
        line["masked"] = True
        line["key"] = None if row.key is None else key.text
        line["value"] = None if row.value is None else value.text
        line["headers"] = [[name, decoder.header(name, each)] for name, each in row.headers]
        return line
    for name, data, found in (("key", row.key, key), ("value", row.value, value)):
        try:
            line[name] = None if data is None else data.decode("utf-8")
        except UnicodeDecodeError:
            line[f"{name}_base64"] = base64.b64encode(data or b"").decode()
        if found.schema_id is not None and data is not None:
            line[name] = found.tree
            line[f"{name}_base64"] = base64.b64encode(data).decode()
    line["headers"] = [header_document(name, each) for name, each in row.headers]
    return line


async def import_records(call: Call) -> Done:
    """Write the records of a file: lines of JSON as `export` writes them; any other line is a value.

    Partitions and timestamps are those of the lines; with `as=new`, they are chosen as for new records.
    """
    topic = await call.topic()
    body = await read_body(call.request.scope, call.request.receive, call.settings.max_request_bytes)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidField(f"The file is not UTF-8 (byte {error.start}).") from None
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        raise InvalidField("The file is empty.")
    if len(lines) > _MAX_IMPORTED:
        raise InvalidField(f"The file has {len(lines)} lines; at most {_MAX_IMPORTED} are imported at once.")
    records = [record_of(line, f"Line {number}") for number, line in enumerate(lines, 1)]
    if call.query("as") == "new":
        records = [each._replace(partition=None, timestamp=None) for each in records]
    _check_partitions(records, topic)
    await produce(call.view.settings, topic.name, len(topic.partitions), records, _CLOCK.time_ms())
    await call.view.refreshed()
    return Done(f"{len(records)} records are imported.", None, {"records": len(records)}, 201)


def _check_partitions(records: list[NewRecord], topic: Topic) -> None:
    for number, each in enumerate(records, 1):
        if each.partition is not None and each.partition >= len(topic.partitions):
            raise InvalidField(
                f"Line {number}: topic {topic.name} has no partition {each.partition}. "
                "Import the file as new records (as=new) to choose partitions by key."
            )


def record_of(line: str, label: str) -> NewRecord:
    """Return the record of a line."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not value.keys() & {"value", "value_base64"}:
        return NewRecord(None, line.rstrip("\r").encode())
    if value.get("masked") is True:
        raise InvalidField(f"{label} was exported with masked fields; it is not what the topic contained.")
    headers = value.get("headers") or []
    if isinstance(headers, dict):
        headers = [[name, each if each is None else str(each)] for name, each in headers.items()]
    if not isinstance(headers, list):
        raise InvalidField(f"{label}: headers must be a list of pairs, or an object.")
    return NewRecord(
        _field(value, "key", label),
        _field(value, "value", label),
        tuple(header_of(each, f"{label}: a header") for each in headers),
        _number(value, "partition", label, 2**31 - 1),
        _number(value, "timestamp", label, _MAX_TIMESTAMP),
    )


def _field(value: dict[str, Any], name: str, label: str) -> bytes | None:
    encoded = value.get(f"{name}_base64")
    if encoded is not None:
        return from_base64(encoded, f"{label}: {name}_base64")
    found = value.get(name)
    if found is None:
        return None
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _number(value: dict[str, Any], name: str, label: str, most: int) -> int | None:
    found = value.get(name)
    # Records of the oldest formats have the timestamp -1: none.
    if found is None or found == -1:
        return None
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= most:
        raise InvalidField(f"{label}: {name} must be a whole number.")
    return found
