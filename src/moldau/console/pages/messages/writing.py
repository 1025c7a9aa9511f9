"""Writing records: the form of the dialog, and the fields with which it writes a record again."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final

from moldau.base.clock import SystemClock
from moldau.base.errors import KafkaError
from moldau.client.serdes import SerializationError
from moldau.console.cluster.snapshot import Topic
from moldau.console.records.decoding import TopicDecoder, is_framed, readable
from moldau.console.records.encoding import editable, encode_by_schema
from moldau.console.records.producing import NewRecord, produce
from moldau.console.records.reading import Row
from moldau.console.web.call import Call, Done
from moldau.console.web.forms import Form, InvalidField, checked_number

#: A larger record is not offered in the dialog.
_MAX_EDITED: Final = 1 << 20
_TEXT, _BASE64, _EMPTY = "text", "base64", "empty"
_CLOCK: Final = SystemClock()


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
    lines = form.get("headers", "").replace("\r", "").split("\n")
    headers += [parse_header(line) for line in lines if line.strip()]
    value: bytes | None = None
    if not form.flag("tombstone"):
        chosen = form.text("schema")
        if chosen:
            codecs = call.services.decoder.codecs
            value = await encode_by_schema(call.services.registry, codecs, chosen, form.get("value", ""))
        else:
            value = _bytes(form, "value", "Value")
    return NewRecord(_key(form), value, tuple(headers), index)


def _key(form: Form) -> bytes | None:
    """An empty field is no key, unless the format says that the key is empty."""
    if form.get("key", "") == "":
        return b"" if form.get("key_format") == _EMPTY else None
    return _bytes(form, "key", "Key")


def _bytes(form: Form, name: str, label: str) -> bytes:
    text = form.get(name, "")
    if form.get(f"{name}_format", _TEXT) != _BASE64:
        return text.encode("utf-8", "surrogatepass")
    return from_base64(text, label)


def from_base64(text: object, label: str) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except (ValueError, binascii.Error):
        raise InvalidField(f"{label} is not base64.") from None


def parse_header(line: str) -> tuple[str, bytes | None]:
    """Return the header of a line: `name=value`, or JSON as `header_document` returns it."""
    if line.startswith("["):
        try:
            return header_of(json.loads(line), f"The header {line[:40]}")
        except (ValueError, RecursionError):
            raise InvalidField(f"The header {line[:40]} is not JSON.") from None
    name, _, text = line.partition("=")
    return name.strip(), text.encode()


def header_document(name: str, value: bytes | None) -> list[Any]:
    """Return a header as JSON without loss: name and text, null, or an object with base64."""
    if value is None:
        return [name, None]
    try:
        return [name, value.decode("utf-8")]
    except UnicodeDecodeError:
        return [name, {"base64": base64.b64encode(value).decode()}]


def header_of(document: Any, label: str) -> tuple[str, bytes | None]:
    """Return the header that `header_document` describes."""
    match document:
        case [str(name), None]:
            return name, None
        case [str(name), str(text)]:
            return name, text.encode("utf-8", "surrogatepass")
        case [str(name), {"base64": encoded}]:
            return name, from_base64(encoded, label)
        case _:
            raise InvalidField(
                f'{label} must be ["name", "text"], ["name", null] or ["name", {{"base64": …}}].'
            )


async def again(decoder: TopicDecoder, row: Row) -> dict[str, str] | None:
    """Return the fields of the dialog that write this record again as it is; None if it is too large."""
    if row.key_size + row.value_size > _MAX_EDITED:
        return None
    key, key_format = _field(row.key, lines=False)
    fields = {
        "key": key,
        "key_format": key_format,
        "key_hint": {_BASE64: "The key is shown as base64.", _EMPTY: "The key is empty."}.get(key_format, ""),
        "schema": "",
        "headers": "\n".join(_header_line(name, value) for name, value in row.headers),
        "tombstone": "true" if row.value is None else "",
    }
    fields["value"], fields["value_format"] = _field(row.value, lines=True)
    if row.value is not None and decoder.codecs is not None and is_framed(row.value, row.headers, key=False):
        try:
            found = await editable(decoder.codecs, row.value)
        except (SerializationError, KafkaError):
            found = None
        if found is not None and "\r" not in found[1]:
            fields["schema"], fields["value"] = found
            fields["value_format"] = _TEXT
    return fields


def _field(data: bytes | None, *, lines: bool) -> tuple[str, str]:
    """Return the text of a form's field and its format; browsers normalize the ends of lines."""
    if not data:
        return "", _TEXT if data is None or lines else _EMPTY
    text = readable(data)
    if text is None or "\r" in text or ("\n" in text and not lines):
        return base64.b64encode(data).decode(), _BASE64
    return text, _TEXT


def _header_line(name: str, value: bytes | None) -> str:
    text = None if value is None else readable(value)
    simple = name and name == name.strip() and not set("=[") & set(name)
    if simple and text is not None and not set("\r\n") & set(name + text):
        return f"{name}={text}"
    return json.dumps(header_document(name, value))


async def schema_choices(call: Call, own: str = "") -> list[tuple[str, str]]:
    """Return the schemas a value can have: those of subjects, and that of a record."""
    if call.services.registry is None:
        return []
    try:
        subjects = sorted(await call.services.registry.subjects())
    except KafkaError:
        subjects = []
    first = [(own, f"Schema {own.removeprefix('#')}, that of the record")] if own else []
    return [("", "None"), *first, *((each, each) for each in subjects)]
