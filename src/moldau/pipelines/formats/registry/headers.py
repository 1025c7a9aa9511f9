"""Records that name their schema in a header, as serializers with `schema.id.serializer=HEADER` write them.

The value of the header has the form of the bytes that other records have in front of their data, so that the
formats need only one: `with_frame` puts it there.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from moldau.client.registry.serdes.framing import header_name

#: Formats whose records name a schema, by the names of `format_named`.
_FRAMED = frozenset({"AVRO", "JSON_SR", "JSON_SCHEMA", "PROTOBUF"})


def is_framed(format_name: str | None, options: Mapping[str, str]) -> bool:
    """Return whether the records of a format name a schema of a registry."""
    named = "registry" in options or "schema.registry.url" in options
    return named and (format_name or "").upper().replace("-", "_") in _FRAMED


def with_frame(data: Column, headers: Column, *, key: bool) -> Column:
    """Return the bytes of a key or value, after the frame that a header of the record has instead of them."""
    name = F.lit(header_name(key))
    found = F.filter(headers, lambda header: (header["key"] == name) & header["value"].isNotNull())
    frame_bytes = F.coalesce(F.get(found, F.lit(0))["value"], F.lit(b""))
    return F.when(data.isNotNull(), F.concat(frame_bytes, data))
