"""One record, as a whole."""

from __future__ import annotations

from typing import Final

from moldau.console.pages.messages.choice import decoded, decoder_of, document
from moldau.console.pages.messages.commands import copy_one
from moldau.console.pages.messages.writing import again, schema_choices
from moldau.console.pages.topics import topic_row
from moldau.console.records import reading
from moldau.console.records.decoding import hex_dump
from moldau.console.web.call import Call, Page, not_found
from moldau.console.web.forms import checked_number

#: Characters of a key or value on the page.
_SHOWN: Final = 256 * 1024
_DUMPED: Final = 4096


async def message(call: Call) -> Page:
    """One record, with its whole value."""
    topic = await call.topic()
    index = checked_number(call.path("partition"), "The partition", most=2**31 - 1)
    offset = checked_number(call.path("offset"), "The offset")
    if index >= len(topic.partitions):
        raise not_found(f"Partition {index} of topic {topic.name}")
    row = await reading.read_record(call.view.cluster, topic.name, index, offset)
    if row is None:
        raise not_found(f"Record {offset} of {topic.name}-{index}")
    decoder = decoder_of(call, topic)
    key, value = await decoded(decoder, row)
    data = {
        "topic": topic_row(topic),
        "message": document(decoder, row, key, value, most=_SHOWN),
    }
    masked = bool(decoder.rules)
    fields = None if masked else await again(decoder, row)
    extra = {
        "tree": value.tree,
        "hex": "" if row.value is None or masked else hex_dump(row.value[:_DUMPED]),
        "again": fields,
        "schemas": await schema_choices(call, (fields or {}).get("schema", "")),
        "masked": masked,
    }
    copy = copy_one(call, topic.name, index, offset)
    return Page("message", f"{topic.name}, partition {index}, offset {offset}", data, extra, copy)
