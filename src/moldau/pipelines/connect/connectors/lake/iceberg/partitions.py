"""Partition fields of new tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from moldau.pipelines.connect.connectors.lake.rows.partitions import PartitionField
from moldau.pipelines.connect.data.errors import ConnectError

if TYPE_CHECKING:
    from pyiceberg.table.update.spec import UpdateSpec


def add_partitions(update: UpdateSpec, schema: pa.Schema, fields: Sequence[PartitionField]) -> None:
    for each in fields:
        if schema.get_field_index(each.column) < 0:
            names = ", ".join(schema.names)
            raise ConnectError(f"The partitioning names the column {each.column}; the table has {names}.")
        update.add_field(each.column, _transform(each), _name(each))


def _transform(field: PartitionField) -> Any:
    from pyiceberg import transforms

    width: dict[str, Any] = {"bucket": transforms.BucketTransform, "truncate": transforms.TruncateTransform}
    if field.transform in width:
        return width[field.transform](field.width)
    plain: dict[str, Any] = {
        "identity": transforms.IdentityTransform,
        "year": transforms.YearTransform,
        "month": transforms.MonthTransform,
        "day": transforms.DayTransform,
        "hour": transforms.HourTransform,
    }
    return plain[field.transform]()


def _name(field: PartitionField) -> str:
    """Return the name that Iceberg itself gives to the partition field."""
    if field.transform == "identity":
        return field.column
    return f"{field.column}_{'trunc' if field.transform == 'truncate' else field.transform}"
