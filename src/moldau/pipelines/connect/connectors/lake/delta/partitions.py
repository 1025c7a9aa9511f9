"""Partition columns of Delta tables.

Delta partitions by columns only. Each transform of the configuration becomes a column of its own, which
readers can filter by: `days(at)` is `at_day`, a date; `bucket(id, 16)` is `id_bucket`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from moldau.pipelines.connect.connectors.lake.rows.partitions import PartitionField
from moldau.pipelines.connect.connectors.lake.rows.values import text
from moldau.pipelines.connect.data.errors import ConnectError

_TYPES: Final[Mapping[str, pa.DataType]] = {
    "year": pa.int32(),
    "month": pa.date32(),
    "day": pa.date32(),
    "hour": pa.timestamp("us", tz="UTC"),
    "bucket": pa.int32(),
    "truncate": pa.string(),
}
_TIMES: Final[Mapping[str, Callable[[datetime], Any]]] = {
    "year": lambda at: at.year,
    "month": lambda at: at.date().replace(day=1),
    "day": lambda at: at.date(),
    "hour": lambda at: at.replace(minute=0, second=0, microsecond=0),
}


def column_name(field: PartitionField) -> str:
    if field.transform == "identity":
        return field.column
    return f"{field.column}_{'trunc' if field.transform == 'truncate' else field.transform}"


def derived_columns(fields: Sequence[PartitionField]) -> set[str]:
    """Return the names of the columns that partitioning adds."""
    return {column_name(each) for each in fields if each.transform != "identity"}


def with_partitions(rows: pa.Table, fields: Sequence[PartitionField]) -> pa.Table:
    """Return the rows with the partition columns."""
    for each in fields:
        if each.column not in rows.column_names:
            names = ", ".join(rows.column_names)
            raise ConnectError(f"The partitioning names the column {each.column}; the table has {names}.")
        if each.transform == "identity":
            continue
        source = rows.column(each.column)
        kind = source.type if _keeps_type(each, source.type) else _TYPES[each.transform]
        values = [None if value is None else _applied(each, value) for value in source.to_pylist()]
        rows = rows.append_column(column_name(each), pa.array(values, kind))
    return rows


def _keeps_type(field: PartitionField, kind: pa.DataType) -> bool:
    return field.transform == "truncate" and bool(pa.types.is_integer(kind))


def _applied(field: PartitionField, value: Any) -> Any:
    if field.transform == "bucket":
        return zlib.crc32(text(value).encode()) % field.width
    if field.transform == "truncate":
        return value - value % field.width if isinstance(value, int) else text(value)[: field.width]
    return _TIMES[field.transform](_moment(field, value))


def _moment(field: PartitionField, value: Any) -> datetime:
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.min.replace(tzinfo=UTC) + timedelta(days=value.toordinal() - 1)
    raise ConnectError(f"The partitioning by {field.transform} needs dates or timestamps in {field.column}.")
