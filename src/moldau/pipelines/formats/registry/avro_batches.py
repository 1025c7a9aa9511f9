"""Decode a column of Avro records that name their schemas.

The records of a batch are grouped by schema id. Groups whose schema is flat are decoded in compiled loops
(`pipelines/arrow/avro`), all other records one by one; both give the same rows and errors.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from moldau.client.registry.types import RegistryError
from moldau.client.serdes import SerializationError
from moldau.pipelines.arrow import avro_kernel as kernel
from moldau.pipelines.arrow.avro import FlatAvro, Undecodable
from moldau.pipelines.arrow.columns import BinaryColumn, binary_column
from moldau.pipelines.formats.avro import fitting_array
from moldau.pipelines.formats.registry.options import RegistryOptions
from moldau.pipelines.formats.registry.readers import AvroReaders, avro_codec, read_one

_FRAME = 5
_NO_ID = -1
#: More schemas than this in one batch are decoded record by record.
_MAX_GROUPS = 50
_ERRORS = pa.array([None, "not of this Avro schema", "unexpected bytes after the Avro data"], pa.string())


def decode_avro(data: Any, arrow: Any, registry: RegistryOptions, single: str | None) -> Any:
    """Return the structs of value and error of a binary column; `arrow` is their type."""
    readers = AvroReaders(registry, single)
    column = binary_column("value", data)
    ids = _ids(column, data)
    parts: list[Any] = []
    places: list[Any] = []
    left = np.ones(len(data), bool)
    for id in np.unique(ids[ids != _NO_ID])[:_MAX_GROUPS] if single is None else ():
        place = np.flatnonzero(ids == id)
        found = _decode_group(column, place, arrow, registry, int(id))
        if found is not None:
            parts.append(found)
            places.append(place)
            left[place] = False
    if left.any():
        place = np.flatnonzero(left)
        rows = data.take(pa.array(place)).to_pylist()
        parts.append(fitting_array([read_one(one, readers) for one in rows], arrow))
        places.append(place)
    return _in_order(parts, places, arrow)


def _ids(column: BinaryColumn, data: Any) -> Any:
    """Return the schema id of each row, `_NO_ID` if it has none."""
    ids = np.full(len(data), _NO_ID, np.int64)
    if column.shift < 0:
        return ids
    starts, lengths = column.ends[:-1], np.diff(column.ends)
    framed = np.flatnonzero((lengths > _FRAME) & data.is_valid().to_numpy(zero_copy_only=False))
    if len(framed) == 0:
        return ids
    source = np.frombuffer(column.owner.buffers()[2], np.uint8)
    head = source[starts[framed][:, None] + np.arange(_FRAME)].astype(np.int64)
    named = head[:, 1] << 24 | head[:, 2] << 16 | head[:, 3] << 8 | head[:, 4]
    ids[framed] = np.where(head[:, 0] == 0, named, _NO_ID)
    return ids


def _decode_group(column: BinaryColumn, place: Any, arrow: Any, registry: RegistryOptions, id: int) -> Any:
    """Return the structs of the rows with one schema, or None if they are decoded one by one."""
    if registry.schema_id not in (None, id):
        return None
    try:
        flat = _flat(registry, id, arrow.field("value").type)
        if flat is None:
            return None
        starts, ends = column.ends[place] + _FRAME, column.ends[place + 1]
        values, status = flat.decode(column.data, starts, np.ascontiguousarray(ends))
    except (SerializationError, RegistryError, Undecodable):
        return None
    if (status == kernel.GOOD).all():
        errors = pa.nulls(len(place), pa.string())
    else:
        errors = _ERRORS.take(pa.array(status))
    return pa.StructArray.from_arrays([values, errors], fields=list(arrow))


@lru_cache(maxsize=1000)
def _flat(registry: RegistryOptions, id: int, columns: Any) -> FlatAvro | None:
    codec = avro_codec(registry, id)
    return FlatAvro.of(codec.schema, columns, codec.named)


def _in_order(parts: list[Any], places: list[Any], arrow: Any) -> Any:
    if not parts:
        return pa.array([], arrow)
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate(places), kind="stable")
    return pa.concat_arrays(parts).take(pa.array(order))
