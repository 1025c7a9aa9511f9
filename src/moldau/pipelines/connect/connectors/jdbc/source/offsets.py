"""Source partitions and offsets in Confluent's forms.

A table's partition is `{"protocol": "1", "table": fully qualified name}`, that of older releases `{"table":
name}`, a query's `{"query": "query"}`. An offset has `incrementing`, and `timestamp` in milliseconds with
`timestamp_nanos`, the nanoseconds of its second.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from moldau.pipelines.connect.connectors.jdbc.model import TableId
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.logical import EPOCH, millis_of

INCREMENTING: Final = "incrementing"
TIMESTAMP: Final = "timestamp"
TIMESTAMP_NANOS: Final = "timestamp_nanos"
QUERY_PARTITION: Final = {"query": "query"}


class RowOffset(NamedTuple):
    """The position after a row."""

    incrementing: int | None = None
    timestamp: datetime | None = None

    def to_connect(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.incrementing is not None:
            found[INCREMENTING] = self.incrementing
        if self.timestamp is not None:
            found[TIMESTAMP] = millis_of(self.timestamp)
            found[TIMESTAMP_NANOS] = self.timestamp.microsecond * 1000
        return found

    @classmethod
    def from_connect(cls, offset: Mapping[str, Any] | None) -> RowOffset:
        if not offset:
            return cls()
        incrementing, millis = _integer(offset, INCREMENTING), _integer(offset, TIMESTAMP)
        if millis is None:
            return cls(incrementing)
        nanos = _integer(offset, TIMESTAMP_NANOS)
        if nanos is None:
            nanos = millis % 1000 * 1_000_000
        instant = EPOCH + timedelta(seconds=millis // 1000, microseconds=nanos // 1000)
        return cls(incrementing, instant.astimezone(UTC))


def partitions_of(table: TableId) -> list[dict[str, str]]:
    """Return the forms of a table's partition, newest first; records get the first."""
    return [{"protocol": "1", "table": str(table)}, {"table": table.table}]


def check_offset(partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> None:
    if not partition or not {"table", "query"} & partition.keys():
        raise ConnectError("A partition of the JDBC source has the key 'table' or 'query'")
    if offset is not None:
        if unknown := offset.keys() - {INCREMENTING, TIMESTAMP, TIMESTAMP_NANOS}:
            raise ConnectError(f"Unknown keys in the offset: {', '.join(sorted(unknown))}")
        RowOffset.from_connect(offset)


def _integer(offset: Mapping[str, Any], name: str) -> int | None:
    value = offset.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ConnectError(f"The value of '{name}' in the offset must be a number")
    return value
