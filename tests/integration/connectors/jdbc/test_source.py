"""The JDBC source against real databases."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from moldau.pipelines.connect.connectors.jdbc.source.connector import JdbcSourceConnector
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.testing.connect import SourceRun
from tests.harness.databases.mariadb import MariaDb
from tests.harness.databases.postgresql import PostgreSql
from tests.integration.connectors.jdbc.databases import Sql

FAST = {"topic.prefix": "db-", "poll.interval.ms": "20", "table.poll.interval.ms": "50"}


def source(sql: Sql, **settings: str) -> SourceRun:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return SourceRun(JdbcSourceConnector(), {**sql.settings, **FAST, **given})


def values(records: list[SourceRecord], field: str) -> list[Any]:
    return [each.value.get(field) for each in records]


def test_incrementing_mode_continues_after_its_offset(sql: Sql) -> None:
    sql.execute(
        "CREATE TABLE users (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(20))",
        "INSERT INTO users VALUES (1, 'ann'), (2, NULL), (3, 'carl 100%')",
    )
    with source(sql, mode="incrementing", incrementing_column_name="id", batch_max_rows="2") as run:
        records = run.read(2)
        assert values(records, "name") == ["ann", None]
        assert records[0].topic == "db-users"
        schema = records[0].value_schema
        assert schema is not None and schema.name == "users"
        assert [each.schema.optional for each in schema.fields] == [False, True]
        run.restart()
        assert values(run.read(1), "name") == ["carl 100%"]
        sql.execute("INSERT INTO users VALUES (10, 'dora')")
        records = run.read(1)
        assert values(records, "id") == [10]
    qualified = {"sqlite": "users", "postgresql": "public.users"}.get(sql.kind, "test%.users")
    [(partition, offset)] = run.offsets
    assert partition["protocol"] == "1" and partition["table"].endswith(
        qualified.partition("%.")[2] or qualified
    )
    assert offset == {"incrementing": 10}


def test_bulk_mode_reads_all_rows_at_every_poll(sql: Sql) -> None:
    sql.execute("CREATE TABLE colours (name VARCHAR(10))", "INSERT INTO colours VALUES ('red'), ('blue')")
    with source(sql, mode="bulk") as run:
        assert sorted(values(run.read(2), "name")) == ["blue", "red"]
        assert sorted(values(run.read(2), "name")) == ["blue", "red"]
    assert run.offsets == []


def test_timestamp_mode_finds_changed_rows(sql: Sql) -> None:
    kind = {"sqlite": "TIMESTAMP", "postgresql": "TIMESTAMP"}.get(sql.kind, "DATETIME(6)")
    sql.execute(
        f"CREATE TABLE orders (id INTEGER PRIMARY KEY, state VARCHAR(10), changed {kind} NOT NULL)",
        "INSERT INTO orders VALUES (1, 'new', '2024-01-01 00:00:00.123'), "
        "(2, 'new', '2024-01-01 00:00:01.5')",
    )
    with source(sql, mode="timestamp", timestamp_column_name="changed") as run:
        records = run.read(2)
        assert values(records, "id") == [1, 2]
        assert values(records, "changed")[0] == datetime(2024, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)
        assert run.offsets[0][1] == {"timestamp": 1_704_067_201_500, "timestamp_nanos": 500_000_000}
        sql.execute("UPDATE orders SET state = 'paid', changed = '2024-01-02 00:00:00' WHERE id = 1")
        assert values(run.read(1), "state") == ["paid"]


def test_rows_of_the_same_timestamp_are_read_again_after_a_restart_among_them(sql: Sql) -> None:
    kind = "DATETIME(3)" if sql.kind == "mariadb" else "TIMESTAMP"
    sql.execute(
        f"CREATE TABLE events (id INTEGER, at {kind} NOT NULL)",
        "INSERT INTO events VALUES (1, '2024-01-01 00:00:00'), (2, '2024-01-01 00:00:05'), "
        "(3, '2024-01-01 00:00:05'), (4, '2024-01-01 00:00:05')",
    )
    with source(sql, mode="timestamp", timestamp_column_name="at") as run:
        assert values(run.read(2), "id")[0] == 1
        run.restart()
        assert sorted(values(run.read(3), "id")) == [2, 3, 4]
        run.restart()
        sql.execute("INSERT INTO events VALUES (5, '2024-01-01 00:00:06')")
        assert values(run.read(1), "id") == [5]


def test_timestamp_and_incrementing_give_every_row_an_offset(sql: Sql) -> None:
    kind = "DATETIME(3)" if sql.kind == "mariadb" else "TIMESTAMP"
    sql.execute(
        f"CREATE TABLE events (id INTEGER NOT NULL, made {kind}, changed {kind} NOT NULL)",
        "INSERT INTO events VALUES (1, '2024-01-01 00:00:05', '2024-01-01 00:00:00'), "
        "(2, NULL, '2024-01-01 00:00:05'), (3, NULL, '2024-01-01 00:00:05')",
    )
    columns = {"incrementing_column_name": "id", "timestamp_column_name": "made,changed"}
    with source(sql, mode="timestamp+incrementing", **columns) as run:
        assert values(run.read(2), "id") == [1, 2]
        run.restart()
        assert values(run.read(1), "id") == [3]
        assert run.offsets[0][1] == {
            "incrementing": 3,
            "timestamp": 1_704_067_205_000,
            "timestamp_nanos": 0,
        }


def test_a_query_is_read_with_criteria_around_it(sql: Sql) -> None:
    sql.execute(
        "CREATE TABLE a (id INTEGER NOT NULL, name VARCHAR(20))",
        "INSERT INTO a VALUES (1, '10%'), (2, 'b'), (3, 'c%')",
    )
    query = "SELECT id AS number, name FROM a WHERE name LIKE '%\\%' ESCAPE '\\'"
    if sql.kind == "mariadb":
        query = "SELECT id AS number, name FROM a WHERE name LIKE '%|%' ESCAPE '|'"
    with source(
        sql, mode="incrementing", incrementing_column_name="number", query=query, topic_prefix="found"
    ) as run:
        records = run.read(2)
        assert values(records, "number") == [1, 3]
        assert {each.topic for each in records} == {"found"}
        run.restart()
        sql.execute("INSERT INTO a VALUES (4, 'd%')")
        assert values(run.read(1), "name") == ["d%"]
    assert run.offsets == [({"query": "query"}, {"incrementing": 4})]


def test_a_transaction_that_commits_late_is_not_lost(sql: Sql) -> None:
    """The row with the smaller id, and the older time, commits after the one with the larger."""
    if sql.kind == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    kind = "SERIAL" if sql.kind == "postgresql" else "INTEGER AUTO_INCREMENT"
    time = "TIMESTAMP(6)" if sql.kind == "postgresql" else "DATETIME(6)"
    now = "clock_timestamp()" if sql.kind == "postgresql" else "NOW(6)"
    sql.execute(
        f"CREATE TABLE t (id {kind} PRIMARY KEY, at {time} NOT NULL DEFAULT {now}, name VARCHAR(9) NOT NULL)"
    )
    first = sql.connect()
    cursor = first.cursor()
    cursor.execute("SET TIME ZONE 'UTC'" if sql.kind == "postgresql" else "SET time_zone = '+00:00'")
    cursor.execute("INSERT INTO t (name) VALUES ('slow')")
    sql.execute("INSERT INTO t (name) VALUES ('quick')")
    for mode in ("incrementing", "timestamp", "timestamp+incrementing"):
        with source(sql, mode=mode, incrementing_column_name="id", timestamp_column_name="at") as run:
            for _ in range(5):
                assert run.poll() == []
            if mode == "timestamp+incrementing":
                first.commit()
                assert values(run.read(2), "name") == ["slow", "quick"]
    first.close()


def test_a_transaction_without_writes_is_waited_for_only_a_while(postgresql_sql: Sql) -> None:
    sql = postgresql_sql
    sql.execute("CREATE TABLE t (id SERIAL PRIMARY KEY, name TEXT NOT NULL)")
    report = sql.connect()
    report.execute("SELECT 1")
    sql.execute("INSERT INTO t (name) VALUES ('a')")
    with source(
        sql, mode="incrementing", incrementing_column_name="id", open_transaction_wait_ms="200"
    ) as run:
        assert values(run.read(1), "name") == ["a"]
        # The report is known now, and delays nothing until it writes.
        report.execute("INSERT INTO t (name) VALUES ('late')")
        sql.execute("INSERT INTO t (name) VALUES ('b')")
        for _ in range(20):
            assert run.poll() == []
        report.commit()
        assert values(run.read(2), "name") == ["late", "b"]
    report.close()


def test_a_prepared_transaction_is_waited_for(postgresql_sql: Sql) -> None:
    sql = postgresql_sql
    sql.execute("CREATE TABLE t (id SERIAL PRIMARY KEY, name TEXT NOT NULL)")
    slow = sql.connect()
    slow.execute("INSERT INTO t (name) VALUES ('slow')")
    sql.execute("INSERT INTO t (name) VALUES ('quick')")
    with source(sql, mode="incrementing", incrementing_column_name="id") as run:
        assert run.poll() == []
        slow.execute("PREPARE TRANSACTION 'one'")
        for _ in range(10):
            assert run.poll() == []
        slow.rollback()
        slow.autocommit = True
        slow.execute("COMMIT PREPARED 'one'")
        assert values(run.read(2), "name") == ["slow", "quick"]
    slow.close()


def test_a_user_of_mariadb_who_may_not_see_transactions_reads_at_once(
    mariadb: MariaDb, mariadb_sql: Sql, caplog: pytest.LogCaptureFixture
) -> None:
    sql = mariadb_sql
    sql.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    name = sql.url.rpartition("/")[2]
    with mariadb.connect("", root=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE USER weak IDENTIFIED BY 'weak'")
        cursor.execute(f"GRANT SELECT ON {name}.* TO weak")
    weak = {"connection_user": "weak", "connection_password": "weak"}
    with source(sql, mode="incrementing", incrementing_column_name="id", **weak) as run:
        assert values(run.read(1), "id") == [1]
    assert "PROCESS" in caplog.text


def test_a_standby_does_not_show_the_transactions_of_its_primary(
    postgresql: PostgreSql, postgresql_sql: Sql, caplog: pytest.LogCaptureFixture
) -> None:
    sql = postgresql_sql
    sql.execute(
        "CREATE TABLE t (id SERIAL PRIMARY KEY, name TEXT NOT NULL)", "INSERT INTO t (name) VALUES ('a')"
    )
    standby = PostgreSql(postgresql)
    try:
        name = sql.url.rpartition("/")[2]
        copy = Sql("postgresql", standby.url(name), lambda: standby.connect(name, autocommit=False))
        with source(copy, mode="incrementing", incrementing_column_name="id") as run:
            assert values(run.read(1), "name") == ["a"]
    finally:
        standby.close()
    assert "timestamp.delay.interval.ms" in caplog.text


def test_types_of_postgresql(postgresql_sql: Sql) -> None:
    sql = postgresql_sql
    sql.execute(
        'CREATE TABLE "My ""Types" (id BIGINT PRIMARY KEY, small SMALLINT, flag BOOLEAN, single REAL, '
        "price NUMERIC(10,2), free NUMERIC, day DATE, clock TIME, moment TIMESTAMPTZ(6), document JSONB, "
        "key UUID, bytes BYTEA, tags TEXT[], wait INTERVAL)",
        """INSERT INTO "My ""Types" VALUES (1, 2, true, 0.5, 12.3, 1.25, '2024-02-29', '01:02:03.004',
        '2024-01-01 02:00:00.123456+02', '{"a": [1]}', '6f1ed002-ab59-4a5b-a5d5-7e5e0b5e7f5c', '\\x00ff',
        ARRAY['x', NULL], '1 day')""",
    )
    with source(sql, mode="bulk") as run:
        [record] = run.read(1)
    assert record.topic == 'db-My "Types'
    value = record.value
    found = {each.name: value.get(each.name) for each in value.schema.fields}
    assert found["price"] == Decimal("12.30") and str(found["price"]) == "12.30"
    assert found["free"] == Decimal("1.25")
    del found["price"], found["free"]
    assert found == {
        "id": 1,
        "small": 2,
        "flag": True,
        "single": 0.5,
        "day": datetime(2024, 2, 29, tzinfo=UTC),
        "clock": datetime(1970, 1, 1, 1, 2, 3, 4000, tzinfo=UTC),
        "moment": datetime(2024, 1, 1, 0, 0, 0, 123_456, tzinfo=UTC),
        "document": '{"a": [1]}',
        "key": "6f1ed002-ab59-4a5b-a5d5-7e5e0b5e7f5c",
        "bytes": b"\x00\xff",
        "tags": ["x", None],
        "wait": "1 day",
    }
    price = value.schema.field("price").schema
    assert dict(price.parameters) == {"scale": "2", "connect.decimal.precision": "10"}


def test_types_of_mariadb(mariadb_sql: Sql) -> None:
    sql = mariadb_sql
    sql.execute(
        "CREATE TABLE types (id BIGINT UNSIGNED PRIMARY KEY, tiny TINYINT, wide INT UNSIGNED, bit1 BIT(1), "
        "price DECIMAL(10,2), day DATE, clock TIME, moment DATETIME(6), stamp TIMESTAMP(3) NULL, "
        "document JSON, kind ENUM('a','b'), bytes VARBINARY(4))",
        "INSERT INTO types VALUES (18446744073709551615, -1, 4294967295, b'1', 12.3, '2024-02-29', "
        "'01:02:03', '2024-01-01 00:00:00.123456', '2024-01-01 00:00:00.5', '{\"a\": 1}', 'b', x'00ff')",
    )
    with source(sql, mode="bulk", numeric_mapping="best_fit") as run:
        [record] = run.read(1)
    value = record.value
    assert {each.name: value.get(each.name) for each in value.schema.fields} == {
        "id": Decimal(18446744073709551615),
        "tiny": -1,
        "wide": 4294967295,
        "bit1": 1,
        "price": 12.3,
        "day": datetime(2024, 2, 29, tzinfo=UTC),
        "clock": datetime(1970, 1, 1, 1, 2, 3, tzinfo=UTC),
        "moment": datetime(2024, 1, 1, 0, 0, 0, 123_456, tzinfo=UTC),
        "stamp": datetime(2024, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC),
        "document": '{"a": 1}',
        "kind": "b",
        "bytes": b"\x00\xff",
    }


def test_local_times_are_in_the_time_zone_of_the_database(postgresql_sql: Sql) -> None:
    sql = postgresql_sql
    sql.execute(
        "CREATE TABLE t (id INTEGER, at TIMESTAMP NOT NULL)",
        "INSERT INTO t VALUES (1, '2024-07-01 02:00:00')",
    )
    zone = {"db_timezone": "Europe/Berlin"}
    with source(sql, mode="timestamp", timestamp_column_name="at", **zone) as run:
        assert values(run.read(1), "at") == [datetime(2024, 7, 1, tzinfo=UTC)]
        run.restart()
        sql.execute("INSERT INTO t VALUES (2, '2024-07-01 02:00:00.000001')")
        assert values(run.read(1), "id") == [2]


def test_new_tables_give_the_tasks_a_new_configuration(sql: Sql) -> None:
    sql.execute("CREATE TABLE first (id INTEGER PRIMARY KEY)", "CREATE TABLE hidden (id INTEGER PRIMARY KEY)")
    with source(sql, mode="bulk", table_blacklist="hidden") as run:
        sql.execute("CREATE TABLE second (id INTEGER PRIMARY KEY)", "INSERT INTO second VALUES (1)")
        while not run.connector_context.reconfigurations:
            run.poll()
        run.restart()
        assert run.read(1)[0].topic == "db-second"


@pytest.mark.parametrize(
    ("column", "message"), [("id", "nullable"), ("nr", "has no column nr; its columns are id, name")]
)
def test_an_unsuitable_offset_column_is_refused(sql: Sql, column: str, message: str) -> None:
    sql.execute("CREATE TABLE t (id INTEGER, name VARCHAR(9))")
    settings = {"mode": "incrementing", "incrementing_column_name": column}
    with source(sql, **settings) as run, pytest.raises(ConnectError, match=message):
        run.read(1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "timestamp"}, "timestamp.column.name"),
        ({"mode": "sometimes"}, "mode"),
        ({"mode": "bulk", "table.whitelist": "a", "table.blacklist": "b"}, "exclusive"),
        ({"mode": "bulk", "table.whitelist": "a", "query": "SELECT 1"}, "query"),
        ({"mode": "bulk", "connection.url": "jdbc:oracle:thin:secret"}, "jdbc:postgresql:"),
        ({"mode": "bulk", "db.timezone": "Mars"}, "time zone"),
        ({"mode": "bulk", "table.include.list": "("}, "regular expression"),
    ],
)
def test_wrong_configurations_are_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        SourceRun(JdbcSourceConnector(), {"connection.url": "jdbc:sqlite:x", **FAST, **settings})
    assert "secret" not in str(refused.value)


def test_the_source_continues_after_the_database_was_away(caplog: pytest.LogCaptureFixture) -> None:
    server = PostgreSql()
    try:
        name = server.database()
        sql = Sql("postgresql", server.url(name), lambda: server.connect(name, autocommit=False))
        sql.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)")
        retries = {"connection_attempts": "1", "connection_backoff_ms": "10"}
        with source(sql, mode="incrementing", incrementing_column_name="id", **retries) as run:
            assert values(run.read(1), "id") == [1]
            server.stop()
            assert run.poll() == []
            server.start()
            sql.execute("INSERT INTO t VALUES (2)")
            assert values(run.read(1), "id") == [2]
    finally:
        server.close()
    assert "retrying" in caplog.text
    assert "secret" not in caplog.text
