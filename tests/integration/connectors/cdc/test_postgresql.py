"""Change data capture from a real PostgreSQL server."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import Any

import pytest

from moldau.pipelines.connect.connectors.cdc.connector import PostgresConnector
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.data.struct import Struct
from moldau.testing.connect import SourceRun
from tests.harness.databases.postgresql import PostgreSql
from tests.harness.waiting import eventually

USERS = "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, note TEXT)"


class Captured:
    """A database, and connectors that capture it."""

    def __init__(self, server: PostgreSql) -> None:
        self.server = server
        self.name = server.database()

    def execute(self, *statements: str) -> None:
        """Run statements in one transaction."""
        with self.server.connect(self.name, autocommit=False) as connection:
            for each in statements:
                connection.execute(each)

    def source(self, **settings: str) -> SourceRun:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        return SourceRun(
            PostgresConnector(),
            {
                "database.hostname": "127.0.0.1",
                "database.port": str(self.server.port),
                "database.user": "tests",
                "database.password": "secret",
                "database.dbname": self.name,
                "topic.prefix": "shop",
                "slot.name": f"slot_{self.name}",
                "poll.interval.ms": "50",
                "status.update.interval.ms": "100",
                "retriable.restart.connector.wait.ms": "100",
                **given,
            },
        )

    def slot_lag(self) -> int:
        """Return the bytes of the log that the slot holds back."""
        with self.server.connect(self.name) as connection:
            row = connection.execute(
                "SELECT pg_current_wal_lsn() - confirmed_flush_lsn FROM pg_replication_slots "
                "WHERE slot_name = %s",
                [f"slot_{self.name}"],
            ).fetchone()
        return int(row[0])

    def drop_slot(self) -> None:
        with self.server.connect(self.name) as connection:
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
                [f"slot_{self.name}"],
            )


@pytest.fixture
def captured(postgresql: PostgreSql) -> Any:
    found = Captured(postgresql)
    yield found
    found.drop_slot()


def fields(struct: Struct | None) -> dict[str, Any] | None:
    return None if struct is None else {each.name: struct.get(each.name) for each in struct.schema.fields}


def brief(record: SourceRecord) -> tuple[Any, ...]:
    """Return operation, key, and the names before and after."""
    key = None if record.key is None else record.key.get("id")
    if record.value is None:
        return ("tombstone", key)
    before, after = record.value.get("before"), record.value.get("after")
    names = [None if each is None else each.get("name") for each in (before, after)]
    return (record.value.get("op"), key, *names)


def test_snapshot_then_changes(captured: Captured) -> None:
    captured.execute(USERS, "INSERT INTO users VALUES (1, 'ann', NULL), (2, 'bob', 'x')")
    with captured.source() as run:
        first, last = run.read(2)
        assert first.topic == "shop.public.users"
        assert brief(first) == ("r", 1, None, "ann")
        assert first.key_schema is not None and first.key_schema.name == "shop.public.users.Key"
        assert first.value_schema is not None and first.value_schema.name == "shop.public.users.Envelope"
        after = fields(first.value.get("after"))
        assert after == {"id": 1, "name": "ann", "note": None}
        origin = fields(first.value.get("source"))
        assert origin is not None
        assert (origin["connector"], origin["name"], origin["db"]) == ("postgresql", "shop", captured.name)
        assert (origin["schema"], origin["table"], origin["snapshot"]) == ("public", "users", "first")
        assert last.value.get("source").get("snapshot") == "last"
        assert run.offsets[0][1]["last_snapshot_record"] is True
        captured.execute(
            "INSERT INTO users VALUES (3, 'carl', NULL)",
            "UPDATE users SET name = 'bert' WHERE id = 2",
            "DELETE FROM users WHERE id = 1",
        )
        assert [brief(each) for each in run.read(4)] == [
            ("c", 3, None, "carl"),
            ("u", 2, None, "bert"),
            ("d", 1, "", None),
            ("tombstone", 1),
        ]
        captured.execute("UPDATE users SET id = 30 WHERE id = 3")
        deleted, tombstone, created = run.read(3)
        assert [brief(each) for each in (deleted, tombstone, created)] == [
            ("d", 3, "", None),
            ("tombstone", 3),
            ("c", 30, None, "carl"),
        ]
        header = deleted.headers.last_with_name("__debezium.newkey")
        assert header is not None and header.value.get("id") == 30
        origin = fields(created.value.get("source"))
        assert origin is not None and origin["snapshot"] == "false"
        assert origin["txId"] > 0 and origin["lsn"] > 0 and origin["sequence"].startswith('["')


def test_a_restart_continues_within_a_transaction(captured: Captured) -> None:
    captured.execute(USERS)
    with captured.source() as run:
        run.poll()
        # Rows that one command copies have the same position in the log.
        with captured.server.connect(captured.name, autocommit=False) as connection:
            with connection.cursor().copy("COPY users (id, name) FROM STDIN") as copy:
                for number in range(50):
                    copy.write_row((number, f"n{number}"))
            connection.execute("INSERT INTO users SELECT n, 'm' FROM generate_series(100, 149) n")
        found: list[int] = []
        for size in (1, 7, 30, 20, 41):
            found += [each.key.get("id") for each in run.read(size)]
            run.kill() if size % 2 else run.stop()
            eventually(lambda: not _active(captured), what="the slot is free")
            run.start()
        captured.execute("INSERT INTO users VALUES (1000, 'next')")
        found += [each.key.get("id") for each in run.read(2)]
    assert found == [*range(50), *range(100, 150), 1000]


def _active(captured: Captured) -> bool:
    with captured.server.connect(captured.name) as connection:
        row = connection.execute(
            "SELECT active FROM pg_replication_slots WHERE slot_name = %s", [f"slot_{captured.name}"]
        ).fetchone()
    return bool(row and row[0])


def test_a_snapshot_under_load_misses_and_repeats_nothing(captured: Captured) -> None:
    captured.execute(USERS, "INSERT INTO users SELECT n, 'old' FROM generate_series(1, 500) n")
    stop = threading.Event()

    def write() -> None:
        with captured.server.connect(captured.name) as connection:
            number = 500
            while not stop.is_set():
                number += 1
                connection.execute("INSERT INTO users VALUES (%s, 'new')", [number])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with captured.source(snapshot_fetch_size="100") as run:
            records = run.read(800)
            stop.set()
            writer.join()
            with captured.server.connect(captured.name) as connection:
                total = connection.execute("SELECT count(*) FROM users").fetchone()[0]
            records += run.read(total - 800)
    finally:
        stop.set()
        writer.join()
    ids = [each.key.get("id") for each in records]
    assert sorted(ids) == list(range(1, total + 1))
    assert {each.value.get("op") for each in records} == {"r", "c"}


def test_a_snapshot_that_was_not_finished_is_repeated(captured: Captured) -> None:
    captured.execute(USERS, "INSERT INTO users SELECT n, 'a' FROM generate_series(1, 5) n")
    with captured.source() as run:
        run.read(2)
        run.kill()
        captured.execute("DELETE FROM users WHERE id = 5", "INSERT INTO users VALUES (6, 'b')")
        run.start()
        assert [each.key.get("id") for each in run.read(5)] == [1, 2, 3, 4, 6]
        captured.execute("DELETE FROM users WHERE id = 1")
        assert brief(run.read(2)[0])[:2] == ("d", 1)


def test_the_slot_follows_what_is_stored(captured: Captured) -> None:
    captured.execute(USERS, "CREATE TABLE other (id INTEGER)")
    with captured.source(table_include_list="public[.]users") as run:
        run.poll()
        captured.execute("INSERT INTO users SELECT n, 'a' FROM generate_series(1, 10) n")
        run.read(5)
        for _ in range(5):
            run.poll()
        captured.execute("INSERT INTO other SELECT n FROM generate_series(1, 1000) n")

        def caught_up() -> bool:
            run.poll()
            return captured.slot_lag() < 10_000

        eventually(caught_up, what="the slot moves although no captured table changes")


def test_the_slot_keeps_changes_that_were_read_and_not_stored(captured: Captured) -> None:
    captured.execute(USERS, "INSERT INTO users VALUES (1, 'ann', NULL)")
    with captured.source() as run:
        run.read(1)
        run.stop()
        for number in (2, 3, 4):
            captured.execute(f"INSERT INTO users VALUES ({number}, 'new')")
        run.start()
        # One poll returns all three; only the first is stored when the task is killed.
        found = run.read(1)
        for _ in range(2):
            run.kill()
            eventually(lambda: not _active(captured), what="the slot is free")
            run.start()
            found += run.read(1)
        assert [each.key.get("id") for each in found] == [2, 3, 4]


def test_the_tombstone_of_a_delete_is_not_lost(captured: Captured) -> None:
    captured.execute(USERS, "INSERT INTO users VALUES (1, 'ann', NULL)")
    with captured.source() as run:
        run.read(1)
        captured.execute("DELETE FROM users")
        assert brief(run.read(1)[0])[:2] == ("d", 1)
        run.kill()
        eventually(lambda: not _active(captured), what="the slot is free")
        run.start()
        assert [brief(each)[0] for each in run.read(2)] == ["d", "tombstone"]


def test_a_slot_past_the_stored_position_is_an_error(captured: Captured) -> None:
    captured.execute(USERS, "INSERT INTO users VALUES (1, 'ann', NULL)")
    with captured.source() as run:
        run.read(1)
        run.stop()
        captured.execute("INSERT INTO users VALUES (2, 'bob', NULL)")
        with captured.server.connect(captured.name) as connection:
            connection.execute(
                "SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", [f"slot_{captured.name}"]
            )
        run.start()
        with pytest.raises(ConnectError, match="begins after the stored position"):
            run.read(1)


def test_types(captured: Captured) -> None:
    captured.execute(
        "CREATE TYPE mood AS ENUM ('good', 'bad')",
        "CREATE DOMAIN positive AS INTEGER CHECK (VALUE > 0)",
        "CREATE TABLE types (id BIGINT PRIMARY KEY, flag BOOLEAN, price NUMERIC(10,2), free NUMERIC, "
        "single REAL, day DATE, clock TIME, short_clock TIME(3), moment TIMESTAMP, "
        "short_moment TIMESTAMP(3), zoned TIMESTAMPTZ, document JSONB, key UUID, raw BYTEA, tags TEXT[], "
        "numbers INTEGER[][], mood mood, "
        "more positive, wait INTERVAL, bits BIT(10), bit1 BIT(1), place POINT)",
    )
    insert = (
        "INSERT INTO types VALUES ({}, true, 12.3, 1.25, 0.5, '2024-02-29', '01:02:03.000004', "
        "'01:02:03.004', '2024-01-01 00:00:00.123456', '2024-01-01 00:00:00.123', "
        "'2024-01-01 02:00:00.5+02', '{{\"a\": [1]}}', '6f1ed002-ab59-4a5b-a5d5-7e5e0b5e7f5c', '\\x00ff', "
        "ARRAY['x', NULL, 'a,\"b\\'], '{{{{1,2}},{{3,4}}}}', 'bad', 7, '1 day 02:00:00.5', B'1000000001', "
        "B'1', '(1,2)')"
    )
    captured.execute(insert.format(1))
    expected = {
        "flag": True,
        "price": Decimal("12.30"),
        "single": 0.5,
        "day": 19782,
        "clock": 3_723_000_004,
        "short_clock": 3_723_004,
        "moment": 1_704_067_200_123_456,
        "short_moment": 1_704_067_200_123,
        "zoned": "2024-01-01T00:00:00.500000Z",
        "document": '{"a": [1]}',
        "key": "6f1ed002-ab59-4a5b-a5d5-7e5e0b5e7f5c",
        "raw": b"\x00\xff",
        "tags": ["x", None, 'a,"b\\'],
        "mood": "bad",
        "more": 7,
        "wait": 86_400_000_000 + 7_200_500_000,
        "bits": b"\x01\x02",
        "bit1": True,
    }
    with captured.source(column_exclude_list="public.types.numbers") as run:
        [snapshot] = run.read(1)
        captured.execute(insert.format(2))
        [change] = run.read(1)
    for record in (snapshot, change):
        found = fields(record.value.get("after"))
        assert found is not None
        free = found.pop("free")
        assert (free.get("scale"), int.from_bytes(free.get("value"), "big")) == (2, 125)
        del found["id"]
        assert found == expected
    after = snapshot.value.get("after").schema
    assert after.field("moment").schema.name == "io.debezium.time.MicroTimestamp"
    assert dict(after.field("mood").schema.parameters) == {"allowed": "good,bad"}
    assert change.value_schema == snapshot.value_schema


def test_whole_rows_before_a_change_and_values_stored_out_of_line(captured: Captured) -> None:
    large = "md5(random()::text)"
    captured.execute(
        USERS,
        f"INSERT INTO users SELECT 1, 'a', string_agg({large}, '') FROM generate_series(1, 2000)",
    )
    with captured.source() as run:
        [row] = run.read(1)
        note = row.value.get("after").get("note")
        captured.execute("UPDATE users SET name = 'b'")
        assert run.read(1)[0].value.get("after").get("note") == "__debezium_unavailable_value"
        captured.execute("ALTER TABLE users REPLICA IDENTITY FULL")
        captured.execute("UPDATE users SET name = 'c'", "DELETE FROM users")
        changed, deleted, _ = run.read(3)
        assert brief(changed) == ("u", 1, "b", "c")
        assert changed.value.get("after").get("note") == note
        assert deleted.value.get("before").get("note") == note


def test_columns_may_be_added_and_tables_without_key_captured(captured: Captured) -> None:
    captured.execute("CREATE TABLE log (id INTEGER, name TEXT)")
    with captured.source(skipped_operations="none") as run:
        run.poll()
        captured.execute("INSERT INTO log VALUES (1, 'a')", "ALTER TABLE log ADD COLUMN extra TEXT")
        captured.execute("INSERT INTO log VALUES (2, 'b', 'c')", "TRUNCATE log")
        first, second, truncated = run.read(3)
    assert first.key is None
    assert fields(second.value.get("after")) == {"id": 2, "name": "b", "extra": "c"}
    assert truncated.value.get("op") == "t"


def test_only_changes_and_only_the_snapshot(captured: Captured) -> None:
    captured.execute(USERS, "INSERT INTO users VALUES (1, 'a')")
    with captured.source(snapshot_mode="no_data") as run:
        run.poll()
        captured.execute("INSERT INTO users VALUES (2, 'b')")
        assert brief(run.read(1)[0]) == ("c", 2, None, "b")
    with captured.source(snapshot_mode="initial_only") as run:
        assert [each.key.get("id") for each in run.read(2)] == [1, 2]


def test_a_lost_slot_is_an_error(captured: Captured) -> None:
    captured.execute(USERS, "INSERT INTO users VALUES (1, 'a')")
    with captured.source() as run:
        run.read(1)
        run.stop()
        captured.drop_slot()
        run.start()
        with pytest.raises(ConnectError, match="Reset the offsets"):
            run.read(1)
    with captured.source(snapshot_mode="when_needed") as run:
        assert brief(run.read(1)[0]) == ("r", 1, None, "a")


def test_the_publication_has_the_captured_tables(captured: Captured) -> None:
    captured.execute(USERS, "CREATE TABLE other (id INTEGER)")
    settings = {"publication_autocreate_mode": "filtered", "table_include_list": "public.users"}
    with captured.source(**settings) as run:
        run.poll()
        with captured.server.connect(captured.name) as connection:
            rows = connection.execute("SELECT tablename FROM pg_publication_tables").fetchall()
        assert rows == [("users",)]
    settings = {"publication_autocreate_mode": "disabled", "publication_name": "none"}
    with captured.source(**settings) as run, pytest.raises(ConnectError, match="CREATE PUBLICATION"):
        run.read(1)


def test_heartbeats(captured: Captured) -> None:
    captured.execute(USERS)
    with captured.source(heartbeat_interval_ms="50") as run:
        [beat] = run.read(1)
    assert beat.topic == "__debezium-heartbeat.shop"
    assert beat.key.get("serverName") == "shop"


def test_the_stream_continues_after_the_server_was_away(caplog: pytest.LogCaptureFixture) -> None:
    server = PostgreSql()
    try:
        captured = Captured(server)
        captured.execute(USERS, "INSERT INTO users VALUES (1, 'a')")
        with captured.source() as run:
            run.read(1)
            captured.execute("INSERT INTO users VALUES (2, 'b')")
            run.read(1)
            server.stop()
            assert run.poll() == []
            server.start()
            captured.execute("INSERT INTO users VALUES (3, 'c')")
            assert brief(run.read(1)[0]) == ("c", 3, None, "c")
            assert run.poll() == []
    finally:
        server.close()
    assert "trying again" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"slot.name": "My-Slot"}, "slot.name"),
        ({"table.include.list": "("}, "regular expression"),
        ({"table.include.list": "a", "table.exclude.list": "b"}, "exclusive"),
        ({"plugin.name": "wal2json"}, "pgoutput"),
        ({"database.dbname": None}, "database.dbname"),
    ],
)
def test_wrong_configurations_are_refused(settings: dict[str, str | None], message: str) -> None:
    given = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "t"}
    merged = {name: value for name, value in {**given, **settings}.items() if value is not None}
    with pytest.raises(ConfigError, match=message):
        SourceRun(PostgresConnector(), merged)
