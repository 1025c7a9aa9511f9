"""Tables from topics with Iceberg: rows, columns, keys, and what other engines read."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.connectors.lake.iceberg.connector import IcebergSinkConnector
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.logical import DATE, OPTIONAL_TIMESTAMP, decimal_schema
from moldau.pipelines.connect.data.schema import (
    FLOAT64,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    Schema,
    array,
    map_of,
    struct,
)
from moldau.pipelines.connect.data.struct import Struct
from tests.harness.sink_tasks import Partitions, SinkRun
from tests.harness.tables import IcebergLake

EVENT = struct({"id": INT64, "name": OPTIONAL_STRING})
KEY = struct({"id": INT64})


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path)


@pytest.fixture
def log() -> Partitions:
    return Partitions()


def sink(config: dict[str, str], log: Partitions, **options: Any) -> SinkRun:
    return SinkRun(IcebergSinkConnector(), config, log, **options).start()


def event(number: int, name: str | None = None, schema: Schema = EVENT, **others: Any) -> Struct:
    return Struct(schema, id=number, name=name, **others)


def test_types_of_connect_become_types_of_the_table(lake: IcebergLake, log: Partitions) -> None:
    inner = struct({"street": STRING, "number": INT32}, optional=True)
    schema = struct(
        {
            "id": INT64,
            "price": decimal_schema(2),
            "day": DATE,
            "at": OPTIONAL_TIMESTAMP,
            "tags": array(STRING),
            "counts": map_of(STRING, INT32),
            "address": inner,
        }
    )
    moment = datetime(2026, 3, 4, 5, 6, 7, 890_000, tzinfo=UTC)
    address = Struct(inner, street="Main", number=7)
    row = Struct(
        schema,
        id=1,
        price=Decimal("12.30"),
        day=datetime(2026, 3, 4, tzinfo=UTC),
        at=moment,
        tags=["a", "b"],
        counts={"x": 1},
        address=address,
    )
    log.add(row, schema)
    sink(lake.config(), log).run().stop()
    assert lake.rows() == [
        {
            "id": 1,
            "price": Decimal("12.30"),
            "day": date(2026, 3, 4),
            "at": moment,
            "tags": ["a", "b"],
            "counts": [("x", 1)],
            "address": {"street": "Main", "number": 7},
        }
    ]
    fields = {field.name: (str(field.field_type), field.required) for field in lake.table().schema().fields}
    assert fields["id"] == ("long", True)
    assert fields["price"] == ("decimal(38, 2)", True)
    assert fields["at"] == ("timestamptz", False)


def test_columns_are_added_widened_and_made_optional(lake: IcebergLake, log: Partitions) -> None:
    narrow = struct({"id": INT64, "amount": INT32, "unit": STRING})
    wide = struct({"id": INT64, "amount": INT64, "city": STRING})
    log.add(Struct(narrow, id=1, amount=7, unit="kg"), narrow)
    sink(lake.config(), log).run().stop()
    # Both schemas in one commit, in turn.
    log.add(Struct(wide, id=2, amount=2**40, city="Prague"), wide)
    log.add(Struct(narrow, id=3, amount=8, unit="g"), narrow)
    sink(lake.config(), log).run().stop()
    assert lake.rows() == [
        {"id": 1, "amount": 7, "unit": "kg", "city": None},
        {"id": 2, "amount": 2**40, "unit": None, "city": "Prague"},
        {"id": 3, "amount": 8, "unit": "g", "city": None},
    ]
    fields = {field.name: (str(field.field_type), field.required) for field in lake.table().schema().fields}
    expected = {"id": ("long", True), "amount": ("long", True), "unit": ("string", False)}
    assert fields == {**expected, "city": ("string", False)}


def test_without_evolution_unknown_fields_are_left_out_and_a_missing_table_is_an_error(
    lake: IcebergLake, log: Partitions
) -> None:
    fixed = lake.config()
    fixed["iceberg.tables.auto-create-enabled"] = fixed["iceberg.tables.evolve-schema-enabled"] = "false"
    log.add({"id": 1, "extra": True})
    with pytest.raises(ConnectError, match=r"db\.events does not exist.*auto-create-enabled=true"):
        sink(fixed, log).run()
    lake.catalog.create_namespace("db")
    lake.catalog.create_table(
        "db.events", pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
    )
    log.add({"id": "2", "at": "2026-01-02T03:04:05Z"})
    log.add({"id": 3, "at": 1_000})
    sink(fixed, log).run().stop()
    assert lake.rows() == [
        {"id": 1, "at": None},
        {"id": 2, "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)},
        {"id": 3, "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)},
    ]


def test_records_that_do_not_fit_are_reported_and_the_others_written(
    lake: IcebergLake, log: Partitions
) -> None:
    log.add({"id": 1, "name": "a"})
    log.add({"id": "x", "name": "b"})
    log.add("no row")
    log.add({"id": 1.5})
    log.add({"id": 2, "name": 7})
    log.add(None)
    run = sink(lake.config(), log).run()
    run.stop()
    assert lake.rows() == [{"id": 1, "name": "a"}, {"id": 2, "name": "7"}]
    assert [
        record.original_offset for record, _ in sorted(run.reported, key=lambda each: each[0].offset)
    ] == [
        *(1, 2, 3),
    ]
    with pytest.raises(ConnectError, match="Tolerance exceeded"):
        log.committed.clear()
        sink({**lake.config(), "name": "strict"}, log, tolerant=False).run()
    # Rows of the failed call were not committed.
    assert len(lake.rows()) == 2


@pytest.mark.parametrize("interval_ms", ["100", "60000"])
def test_the_last_value_of_a_key_remains_and_a_tombstone_deletes_it(
    lake: IcebergLake, log: Partitions, interval_ms: str
) -> None:
    """Within a commit and across commits."""
    config = lake.config() | {
        "iceberg.tables.upsert-mode-enabled": "true",
        "iceberg.control.commit.interval-ms": interval_ms,
    }
    steps: list[tuple[int, str | None]] = [
        (1, "a"),
        (2, "b"),
        (1, "c"),
        (3, "d"),
        (2, None),
        (4, "e"),
        (3, "f"),
    ]
    steps += [(5, None), (4, "g")]
    run = sink(config, log, partitions=[TopicPartition("events", 0)])
    for number, name in steps:
        value = None if name is None else event(number, name)
        log.add(value, EVENT, key=Struct(KEY, id=number), key_schema=KEY)
        if interval_ms == "100":
            run.run()
    run.step()
    run.stop()
    expected = [{"id": 1, "name": "c"}, {"id": 3, "name": "f"}, {"id": 4, "name": "g"}]
    assert lake.rows() == expected
    assert lake.table().schema().identifier_field_names() == {"id"}


def test_key_columns_come_from_the_key_and_many_keys_are_replaced(lake: IcebergLake, log: Partitions) -> None:
    config = lake.config() | {
        "iceberg.tables.upsert-mode-enabled": "true",
        "iceberg.tables.default-id-columns": "region,number",
        "iceberg.tables.default-partition-by": "region",
        "iceberg.tables.cdc-field": "op",
    }
    key = struct({"region": STRING, "number": INT64})
    value = struct({"amount": FLOAT64, "op": STRING})

    def add(number: int, amount: float, operation: str) -> None:
        where = Struct(key, region="ab"[number % 2], number=number)
        log.add(Struct(value, amount=amount, op=operation), value, key=where, key_schema=key)

    for number in range(600):
        add(number, 1.0, "c")
    run = sink(config, log).run()
    for number in range(0, 600, 3):
        add(number, 2.0, "u" if number % 2 else "d")
    run.run().stop()
    rows = lake.rows(sort="number")
    assert [row["number"] for row in rows] == [n for n in range(600) if n % 6]
    assert all(row["amount"] == (2.0 if row["number"] % 3 == 0 else 1.0) for row in rows)
    assert {row["region"] for row in rows} == {"a", "b"}


def test_partitions_by_time_bucket_and_prefix(lake: IcebergLake, log: Partitions) -> None:
    schema = struct({"id": INT64, "name": STRING, "at": OPTIONAL_TIMESTAMP})
    config = lake.config() | {
        "iceberg.tables.default-partition-by": "days(at), bucket(id, 4), truncate(name, 1)"
    }
    for number in range(40):
        at = datetime(2026, 1, 1 + number % 2, tzinfo=UTC)
        log.add(Struct(schema, id=number, name=f"{'ab'[number % 2]}{number}", at=at), schema)
    sink(config, log).run().stop()
    table = lake.table()
    assert [str(field.transform) for field in table.spec().fields] == ["day", "bucket[4]", "truncate[1]"]
    assert len({tuple(task.file.partition[i] for i in range(3)) for task in table.scan().plan_files()}) == 8
    assert [row["id"] for row in lake.rows()] == list(range(40))


def test_records_are_routed_by_a_field(lake: IcebergLake, log: Partitions) -> None:
    config = lake.config("db.red,db.blue") | {
        "iceberg.tables.route-field": "meta.color",
        "iceberg.table.db.red.route-regex": "re.*",
        "iceberg.table.db.blue.route-regex": "blue",
    }
    for number, color in enumerate(["red", "blue", "green", "reddish"]):
        log.add({"id": number, "meta": {"color": color}})
    sink(config, log).run().stop()
    assert [row["id"] for row in lake.rows("red")] == [0, 3]
    assert [row["id"] for row in lake.rows("blue")] == [1]
    dynamic = lake.config("") | {
        "iceberg.tables.dynamic-enabled": "true",
        "iceberg.tables.route-field": "table",
        "name": "dynamic",
    }
    other = Partitions()
    other.add({"id": 1, "table": "DB.A"})
    other.add({"id": 2, "table": "db.b"})
    sink(dynamic, other).run().stop()
    assert [row["id"] for row in lake.rows("a")] == [1]
    assert [row["id"] for row in lake.rows("b")] == [2]


def test_duckdb_and_pandas_read_the_table_also_as_of_an_offset(lake: IcebergLake, log: Partitions) -> None:
    config = lake.config("db.${topic}") | {"topics": "shop.orders"}
    for number in range(30):
        log.add(event(number, "x"), EVENT, topic="shop.orders")
        if number % 10 == 9:
            run = sink(config, log).run()
            run.stop()
    table = lake.table("shop_orders")
    assert table.scan().to_pandas()["id"].nunique() == 30
    assert table.scan().to_duckdb("orders").execute("select sum(id) from orders").fetchone() == (435,)
    # The snapshot whose offsets reach 20 contains the records before offset 20.
    chosen = next(
        each
        for each in table.snapshots()
        if '"shop.orders":{"0":20}' in each.summary["kafka.connect.lake.offsets"]
    )
    assert table.scan(snapshot_id=chosen.snapshot_id).to_arrow().num_rows == 20


def test_wrong_settings_are_named() -> None:
    config = {
        "iceberg.tables": "events",
        "iceberg.tables.dynamic-enabled": "true",
        "iceberg.tables.default-partition-by": "weeks(at)",
        "iceberg.catalog.type": "hadoop",
        "iceberg.control.commit.interval-ms": "soon",
    }
    errors = {
        name: value.errors for name, value in IcebergSinkConnector().validate(config).items() if value.errors
    }
    assert "no namespace" in errors["iceberg.tables"][0]
    assert "needs iceberg.tables.route-field" in errors["iceberg.tables.route-field"][0]
    assert "Unknown transform weeks" in errors["iceberg.tables.default-partition-by"][0]
    assert "hadoop is not available" in errors["iceberg.catalog.type"][0]
    assert "Not a number" in errors["iceberg.control.commit.interval-ms"][0]
