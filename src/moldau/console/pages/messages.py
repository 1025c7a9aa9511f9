"""The records of a topic: read, filter, follow, write."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from moldau.base.clock import SystemClock
from moldau.base.errors import KafkaError
from moldau.console.cluster.snapshot import Topic
from moldau.console.pages.resets import parse_time
from moldau.console.pages.topics import topic_row
from moldau.console.records import reading
from moldau.console.records.decoding import Decoded, Decoder, header_text, hex_dump
from moldau.console.records.encoding import encode_by_schema
from moldau.console.records.producing import NewRecord, produce
from moldau.console.records.reading import NEWEST, OFFSET, STARTS, TIME, Row, Start
from moldau.console.web.call import Call, CopyAs, Done, Page, not_found
from moldau.console.web.commands import consumer_script, curl, tool
from moldau.console.web.forms import Form, InvalidField, checked_number

LIMIT: Final = 50
MOST_LIMIT: Final = 500
#: Characters of a value in the table; the page of a record shows all.
SHOWN: Final = 1000
_SHOWN_ALONE: Final = 256 * 1024
#: A topic with more partitions is read only on request.
_MOST_UNASKED: Final = 50
_CLOCK: Final = SystemClock()


async def messages(call: Call) -> Page:
    topic = await call.topic()
    choice = Choice(call, topic)
    filtered = bool(call.query("filter") or call.query("expression"))
    asked = "start" in call.request.query_params or len(topic.partitions) <= _MOST_UNASKED
    rows: list[dict[str, Any]] = []
    if asked and not filtered:
        found = await reading.read_window(
            call.view.cluster, topic.name, choice.partitions, choice.start, choice.limit
        )
        rows = [await shown(call, each) for each in found]
    data = {"topic": topic_row(topic), "messages": rows}
    extra = {
        "choice": choice,
        "filtered": filtered,
        "asked": asked,
        "subjects": await _subjects(call),
        "partition_count": len(topic.partitions),
    }
    return Page("topic_messages", topic.name, data, extra, _copy(call, topic))


async def message(call: Call) -> Page:
    """One record, with its whole value."""
    topic = await call.topic()
    index = checked_number(call.path("partition"), "The partition", most=2**31 - 1)
    offset = checked_number(call.path("offset"), "The offset")
    if index >= len(topic.partitions):
        raise not_found(f"Partition {index} of topic {topic.name}")
    found = await reading.read_record(call.view.cluster, topic.name, index, offset)
    if found is None:
        raise not_found(f"Record {offset} of {topic.name}-{index}")
    row, value = found
    decoder = decoder_of(call)
    decoded = await decoder.decode(value, row.headers)
    data = {
        "topic": topic_row(topic),
        "message": {**await shown(call, row, most=_SHOWN_ALONE), "value": _cut(decoded, _SHOWN_ALONE)},
    }
    masked = bool(call.settings.masked)
    extra = {
        "tree": decoded.tree,
        "hex": "" if value is None or masked else hex_dump(value[:4096]),
        "again": _again(row, value, decoded),
        "partition_count": len(topic.partitions),
        "subjects": await _subjects(call),
        "masked": masked,
    }
    return Page(
        "message", f"{topic.name}, partition {index}, offset {offset}", data, extra, _copy(call, topic)
    )


async def send(call: Call) -> Done:
    """Write a record from the form."""
    topic = await call.topic()
    form = await call.form()
    record = await _new_record(call, topic, form)
    written = await produce(call.view.settings, topic.name, len(topic.partitions), [record], _CLOCK.time_ms())
    await call.view.refreshed()
    partition, offset = written[0]
    return Done(
        f"The record is written to partition {partition} at offset {offset}.",
        None,
        {"partition": partition, "offset": offset},
        201,
    )


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
            call.query("limit") or str(LIMIT), "Number of messages", least=1, most=MOST_LIMIT
        )
        self.filter = call.query("filter")
        self.expression = call.query("expression")
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


def decoder_of(call: Call) -> Decoder:
    return call.services.decoder


async def shown(call: Call, row: Row, most: int = SHOWN) -> dict[str, Any]:
    """Return a record as the table and JSON show it."""
    decoder = decoder_of(call)
    key = await decoder.decode(row.key, row.headers, key=True)
    value = await decoder.decode(row.value, row.headers)
    return {
        "partition": row.partition,
        "offset": row.offset,
        "timestamp": row.timestamp,
        "key": _cut(key, most),
        "value": _cut(value, most),
        "headers": [[name, header_text(each)] for name, each in row.headers],
        "key_size": row.key_size,
        "value_size": row.value_size,
    }


def _cut(decoded: Decoded, most: int) -> dict[str, Any]:
    return {
        "format": decoded.format,
        "text": decoded.text[:most],
        "cut": len(decoded.text) > most,
        "schema_id": decoded.schema_id,
        "error": decoded.error,
    }


async def _new_record(call: Call, topic: Topic, form: Form) -> NewRecord:
    partition = form.text("partition")
    index = None
    if partition:
        index = checked_number(partition, "Partition", most=2**31 - 1)
        if index >= len(topic.partitions):
            raise InvalidField(f"Topic {topic.name} has no partition {index}.")
    headers: list[tuple[str, bytes | None]] = []
    name = form.get("header_name", "")
    if name:
        headers.append((name, form.get("header_value", "").encode()))
    elif form.get("header_value"):
        raise InvalidField("Header name is empty.")
    for line in form.get("headers", "").replace("\r", "").split("\n"):
        if line.strip():
            other, _, text = line.partition("=")
            headers.append((other.strip(), text.encode()))
    key = None if form.get("key", "") == "" else _bytes(form, "key", "Key")
    value: bytes | None = None
    if not form.flag("tombstone"):
        subject = form.text("schema")
        if subject:
            value = await encode_by_schema(call.services, subject, form.get("value", ""))
        else:
            value = _bytes(form, "value", "Value")
    return NewRecord(key, value, tuple(headers), index)


def _bytes(form: Form, name: str, label: str) -> bytes:
    text = form.get(name, "")
    if form.get(f"{name}_format", "text") != "base64":
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise InvalidField(f"{label} is not base64.") from None


def _again(row: Row, value: bytes | None, decoded: Decoded) -> dict[str, Any]:
    """The fields of the dialog that writes a record again."""
    readable = decoded.format in ("text", "json")
    encoded = "" if value is None else base64.b64encode(value[:_SHOWN_ALONE]).decode()
    headers = [f"{name}={header_text(each) or ''}" for name, each in row.headers]
    key = row.key or b""
    try:
        key_text, key_format = key.decode("utf-8"), "text"
    except UnicodeDecodeError:
        key_text, key_format = base64.b64encode(key).decode(), "base64"
    return {
        "key": key_text,
        "key_format": key_format,
        "value": decoded.text if readable else encoded,
        "value_format": "text" if readable else "base64",
        "header_name": "",
        "header_value": "",
        "headers": "\n".join(headers),
        "partition": "",
    }


async def _subjects(call: Call) -> list[str]:
    """The subjects of the registry whose schema a value can have; none if it does not answer."""
    if call.services.registry is None:
        return []
    try:
        return sorted(await call.services.registry.subjects())
    except KafkaError:
        return []


def _copy(call: Call, topic: Topic) -> CopyAs:
    return CopyAs(
        tool(call, "kafka-console-consumer", "--topic", topic.name, "--from-beginning"),
        curl(call),
        consumer_script(call, topic.name),
    )
