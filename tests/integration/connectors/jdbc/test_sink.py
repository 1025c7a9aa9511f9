"""The JDBC sink against real databases."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.connectors.jdbc.sink.connector import JdbcSinkConnector
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError, RetriableError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import (
    FLOAT64,
    INT32,
    INT64,
    OPTIONAL_BYTES,
    OPTIONAL_STRING,
    STRING,
    Schema,
    array,
    struct,
)
from moldau.pipelines.connect.data.struct import Struct
from moldau.testing.connect import SinkRun
from tests.harness.databases.postgresql import PostgreSql
from tests.integration.connectors.jdbc.databases import Sql

USER = struct({"id": INT32, "name": OPTIONAL_STRING}, name="user")
KEY = struct({"id": INT32})


def sink(sql: Sql, *, tolerate: bool = False, **settings: str) -> SinkRun:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return SinkRun(JdbcSinkConnector(), {**sql.settings, **given}, tolerate=tolerate)


def user(offset: int, id: int, name: str | None) -> SinkRecord:
    return record(offset, Struct(USER, id=id, name=name), Struct(KEY, id=id))


def tombstone(offset: int, id: int) -> SinkRecord:
    return record(offset, None, Struct(KEY, id=id))


def record(offset: int, value: Struct | None, key: Struct | None = None, topic: str = "users") -> SinkRecord:
    return SinkRecord(
        topic=topic,
        partition=0,
        offset=offset,
        key_schema=None if key is None else key.schema,
        key=key,
        value_schema=None if value is None else value.schema,
        value=value,
    )


def rows(sql: Sql, query: str = "SELECT id, name FROM users ORDER BY id") -> list[Any]:
    return [tuple(each) for each in sql.rows(query)]


def test_a_table_is_created_and_filled(sql: Sql) -> None:
    with sink(sql, auto_create="true", batch_size="2") as run:
        run.put([user(0, 1, "ann"), user(1, 2, None), user(2, 3, 'it\'s "quoted" 100% \\ ?')])
        assert run.flush() == {TopicPartition("users", 0): 3}
    assert rows(sql) == [(1, "ann"), (2, None), (3, 'it\'s "quoted" 100% \\ ?')]


def test_upsert_writes_a_repeated_record_once_and_tombstones_delete(sql: Sql) -> None:
    settings = {
        "insert_mode": "upsert",
        "pk_mode": "record_key",
        "delete_enabled": "true",
        "auto_create": "true",
    }
    records = [user(0, 1, "a"), user(1, 2, "b"), user(2, 1, "c"), tombstone(3, 2), user(4, 3, "d")]
    with sink(sql, **settings) as run:
        run.put(records)
        run.kill()
        run.start()
        run.put(records)
    assert rows(sql) == [(1, "c"), (3, "d")]


def test_coordinates_are_the_key(sql: Sql) -> None:
    with sink(
        sql, insert_mode="upsert", pk_mode="kafka", auto_create="true", table_name_format="t_${topic}"
    ) as run:
        run.put([user(7, 1, "a")])
        run.put([user(7, 1, "a"), user(8, 1, "b")])
    query = "SELECT __connect_topic, __connect_partition, __connect_offset, name FROM t_users ORDER BY 3"
    assert rows(sql, query) == [("users", 0, 7, "a"), ("users", 0, 8, "b")]


def test_update_mode_changes_existing_rows_only(sql: Sql) -> None:
    sql.execute(
        "CREATE TABLE users (id INTEGER PRIMARY KEY, name VARCHAR(20))", "INSERT INTO users VALUES (1, 'a')"
    )
    with sink(sql, insert_mode="update", pk_mode="record_value", pk_fields="id") as run:
        run.put([user(0, 1, "b"), user(1, 2, "c")])
    assert rows(sql) == [(1, "b")]


def test_columns_are_added_when_fields_appear(sql: Sql) -> None:
    wide = struct(
        {"id": INT32, "name": OPTIONAL_STRING, "age": Schema(INT32.type, default=7), "note": OPTIONAL_STRING}
    )
    with sink(sql, auto_create="true", auto_evolve="true") as run:
        run.put([user(0, 1, "a")])
        run.put([record(1, Struct(wide, id=2, name="b", note="n"))])
    assert rows(sql, "SELECT id, age, note FROM users ORDER BY id") == [(1, 7, None), (2, 7, "n")]


def test_missing_tables_and_columns_are_errors_without_permission(sql: Sql) -> None:
    with sink(sql) as run:
        with pytest.raises(ConnectError) as refused:
            run.put([user(0, 1, "a")])
        assert "auto.create=true" in str(refused.value.__cause__)
    sql.execute("CREATE TABLE users (id INTEGER PRIMARY KEY)")
    with sink(sql) as run:
        with pytest.raises(ConnectError) as refused:
            run.put([user(0, 1, "a")])
        assert "missing fields (name)" in str(refused.value.__cause__)


def test_logical_types_and_bytes(sql: Sql) -> None:
    schema = struct(
        {
            "id": INT64,
            "price": logical.decimal_schema(2),
            "day": logical.DATE,
            "moment": logical.TIMESTAMP,
            "ratio": FLOAT64,
            "bytes": OPTIONAL_BYTES,
        }
    )
    moment = datetime(2024, 7, 1, 12, 0, 0, 123_000, tzinfo=UTC)
    value = Struct(
        schema,
        id=2**60,
        price=Decimal("12.30"),
        day=datetime(2024, 2, 29, tzinfo=UTC),
        moment=moment,
        ratio=0.1,
        bytes=b"\x00\xff",
    )
    with sink(sql, auto_create="true") as run:
        run.put([record(0, value, topic="types")])
    [found] = rows(sql, "SELECT id, price, day, moment, ratio, bytes FROM types")
    if sql.kind == "sqlite":
        expected: tuple[Any, ...] = (2**60, 12.3, 1_709_164_800_000, 1_719_835_200_123, 0.1, b"\x00\xff")
    else:
        moments = moment.replace(tzinfo=None)
        expected = (2**60, Decimal("12.30"), date(2024, 2, 29), moments, 0.1, b"\x00\xff")
    assert found == expected


def test_refused_records_are_reported_and_the_others_written(sql: Sql) -> None:
    sql.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL)")
    records = [user(offset, offset, None if offset in (3, 8) else "x") for offset in range(12)]
    with sink(sql, tolerate=True) as run:
        run.put(records)
        assert [each.offset for each, _ in run.reports] == [3, 8]
    assert [id for id, _ in rows(sql)] == [0, 1, 2, 4, 5, 6, 7, 9, 10, 11]
    with sink(sql) as run, pytest.raises(ConnectError):
        run.put([user(20, 20, None)])


def test_records_without_schema_are_refused(sql: Sql) -> None:
    bare = SinkRecord(topic="users", partition=0, offset=0, value={"id": 1})
    with sink(sql, tolerate=True, auto_create="true") as run:
        run.put([bare, user(1, 1, "a")])
        assert "struct with a schema" in str(run.reports[0][1])
    assert rows(sql) == [(1, "a")]


def test_arrays_of_postgresql(postgresql_sql: Sql) -> None:
    schema = struct({"id": INT32, "tags": array(STRING)})
    with sink(postgresql_sql, auto_create="true") as run:
        run.put([record(0, Struct(schema, id=1, tags=["a", "b"]), topic="t")])
    assert rows(postgresql_sql, "SELECT tags FROM t") == [(["a", "b"],)]


def test_the_sink_puts_again_after_the_database_was_away(caplog: pytest.LogCaptureFixture) -> None:
    server = PostgreSql()
    try:
        name = server.database()
        sql = Sql("postgresql", server.url(name), lambda: server.connect(name, autocommit=False))
        retries = {"max_retries": "3", "retry_backoff_ms": "10", "connection_attempts": "1"}
        with sink(sql, auto_create="true", insert_mode="upsert", pk_mode="record_key", **retries) as run:
            run.put([user(0, 1, "a")])
            server.stop()
            with pytest.raises(RetriableError):
                run.put([user(1, 2, "b")], timeout_s=0)
            assert run.context.retry_ms == 10
            server.start()
            run.put([user(1, 2, "b")])
            server.stop()
            with pytest.raises(ConnectError, match="failed 4 times"):
                run.put([user(2, 3, "c")])
            server.start()
        assert rows(sql) == [(1, "a"), (2, "b")]
    finally:
        server.close()
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"insert.mode": "upsert"}, "needs a key"),
        ({"delete.enabled": "true"}, "record_key"),
        ({"pk.mode": "kafka", "pk.fields": "a,b"}, "exactly three"),
        ({"batch.size": "0"}, "batch.size"),
    ],
)
def test_wrong_configurations_are_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SinkRun(JdbcSinkConnector(), {"connection.url": "jdbc:sqlite:x", **settings})
