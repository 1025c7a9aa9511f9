"""Records to columns: conversion of values, evolving columns, partitionings, and the last change of a key."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from moldau.pipelines.connect.connectors.lake.rows.blocks import Blocks, RowRules
from moldau.pipelines.connect.connectors.lake.rows.evolution import Evolution, created, evolved
from moldau.pipelines.connect.connectors.lake.rows.keys import Upsert
from moldau.pipelines.connect.connectors.lake.rows.partitions import PartitionField, parse_partitions
from moldau.pipelines.connect.connectors.lake.rows.types import plain_schema
from moldau.pipelines.connect.connectors.lake.rows.values import column
from moldau.pipelines.connect.data.errors import ConfigError, DataError
from moldau.pipelines.connect.data.records import SinkRecord

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TIMESTAMP = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.int32(), "12", 12),
        (pa.int64(), 3.0, 3),
        (pa.int64(), MOMENT, 1767323045000),
        (pa.float64(), "1.5", 1.5),
        (pa.bool_(), "TRUE", True),
        (pa.string(), {"a": [1, None]}, '{"a":[1,null]}'),
        (pa.string(), True, "true"),
        (pa.binary(), "AQI=", b"\x01\x02"),
        (pa.decimal128(38, 2), 1.5, Decimal("1.50")),
        (pa.date32(), "2026-01-02", date(2026, 1, 2)),
        (pa.date32(), 1, date(1970, 1, 2)),
        (TIMESTAMP, "2026-01-02T03:04:05Z", MOMENT),
        (TIMESTAMP, 1767323045000, MOMENT),
        (pa.list_(pa.int32()), ["1", None], [1, None]),
    ],
)
def test_values_are_converted_to_the_type_of_the_column(kind: pa.DataType, value: Any, expected: Any) -> None:
    assert column([None, value], kind).to_pylist() == [None, expected]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int32(), 2**31),
        (pa.int64(), 1.5),
        (pa.int64(), True),
        (pa.int64(), "x"),
        (pa.bool_(), 1),
        (pa.decimal128(38, 1), "1.25"),
        (pa.decimal128(38, 1), "NaN"),
        (pa.binary(), "!"),
        (TIMESTAMP, "yesterday"),
        (TIMESTAMP, 2**62),
        (pa.list_(pa.int32()), 1),
        (pa.struct([pa.field("a", pa.int32(), nullable=False)]), {}),
    ],
)
def test_a_conversion_that_loses_something_is_refused(kind: pa.DataType, value: Any) -> None:
    with pytest.raises(DataError):
        column([value], kind)


def test_columns_follow_records_and_keys_stay_required() -> None:
    rules = Evolution(True, key=frozenset({"id"}))
    first = pa.schema(
        [pa.field("id", pa.int32(), nullable=False), pa.field("a", pa.float32(), nullable=False)]
    )
    table = created(first, rules)
    assert evolved(table, first, rules) is table
    record = pa.schema([pa.field("id", pa.int64()), pa.field("b", pa.string(), nullable=False)])
    after = evolved(table, record, rules)
    assert [(field.name, field.type, field.nullable) for field in after] == [
        ("id", pa.int64(), False),
        ("a", pa.float32(), True),
        ("b", pa.string(), True),
    ]
    assert evolved(table, record, Evolution(False)) is table
    narrow = evolved(table, record, Evolution(True, widens=False, key=frozenset({"id"})))
    assert narrow.field("id").type == pa.int32()


def test_types_of_tables_lose_their_large_variants() -> None:
    large = pa.schema([("a", pa.large_string()), ("b", pa.large_list(pa.struct([("c", pa.large_binary())])))])
    inner = pa.struct([("c", pa.binary())])
    assert plain_schema(large) == pa.schema([("a", pa.string()), ("b", pa.list_(pa.field("element", inner)))])


def test_partitionings_are_parsed() -> None:
    assert parse_partitions("region, days(ts),bucket(id, 16) , truncate( name ,4)") == [
        PartitionField("region"),
        PartitionField("ts", "day"),
        PartitionField("id", "bucket", 16),
        PartitionField("name", "truncate", 4),
    ]
    assert parse_partitions("") == []
    for wrong in ("bucket(id)", "days(ts, 4)", "bucket(id, 0)", "weeks(ts)", "days(ts"):
        with pytest.raises(ConfigError):
            parse_partitions(wrong)


def test_only_the_last_change_of_a_key_remains() -> None:
    blocks = Blocks(None, RowRules(Evolution(True, key=frozenset({"id"})), Upsert(("id",))))
    changes = [(1, "a"), (2, "b"), (1, None), (3, "c"), (2, "d"), (1, "e"), (3, None), (9, None)]
    records = [
        SinkRecord(
            topic="t", partition=0, offset=at, key=key, value=None if text is None else {"id": key, "v": text}
        )
        for at, (key, text) in enumerate(changes)
    ]
    assert blocks.add(records) == []
    found = blocks.pending()
    assert found is not None
    assert found[1].rows.to_pylist() == [{"id": 2, "v": "d"}, {"id": 1, "v": "e"}]
    assert found[1].keys is not None
    assert sorted(found[1].keys.column("id").to_pylist()) == [1, 2, 3, 9]
