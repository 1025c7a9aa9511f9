"""Databases connected by a worker: from SQLite to PostgreSQL, and the changes there to a topic."""

from __future__ import annotations

import json
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.harness.connect import Worker, standalone_properties
from tests.harness.databases.postgresql import PostgreSql
from tests.harness.mirror import values_of
from tests.harness.waiting import eventually


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for each in statements:
            connection.execute(each)
        connection.commit()


@pytest.mark.timeout(300)
def test_rows_and_changes_survive_a_killed_worker(
    bootstrap: str, postgresql: PostgreSql, tmp_path: Path
) -> None:
    run = uuid.uuid4().hex[:8]
    shop, database = tmp_path / "shop.db", postgresql.database()
    execute(
        shop,
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL, price DECIMAL(10,2))",
        "INSERT INTO orders VALUES (1, 'pen', 1.5), (2, 'ink', 3)",
    )
    properties = {**standalone_properties(bootstrap, tmp_path), "offset.flush.interval.ms": "500"}
    source = {
        "name": "shop",
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "connection.url": f"jdbc:sqlite:{shop}",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": f"{run}-",
        "poll.interval.ms": "100",
        "transforms": "key,id",
        "transforms.key.type": "org.apache.kafka.connect.transforms.ValueToKey",
        "transforms.key.fields": "id",
        "transforms.id.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
        "transforms.id.field": "id",
    }
    sink = {
        "name": "warehouse",
        "connector.class": "JdbcSink",
        "topics": f"{run}-orders",
        "connection.url": postgresql.url(database),
        "connection.user": "tests",
        "connection.password": "secret",
        "table.name.format": "orders",
        "insert.mode": "upsert",
        "pk.mode": "record_key",
        "pk.fields": "id",
        "auto.create": "true",
        # The killed worker leaves its group after this time.
        "consumer.override.session.timeout.ms": "6000",
        "consumer.override.heartbeat.interval.ms": "1000",
    }
    changes = {
        "name": "changes",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": "127.0.0.1",
        "database.port": str(postgresql.port),
        "database.user": "tests",
        "database.password": "secret",
        "database.dbname": database,
        "topic.prefix": f"cdc-{run}",
        "slot.name": f"slot_{database}",
    }

    def rows() -> list[Any]:
        with postgresql.connect(database) as connection:
            if connection.execute("SELECT to_regclass('orders')").fetchone()[0] is None:
                return []
            return [
                (id, item, float(price)) for id, item, price in connection.execute("TABLE orders ORDER BY id")
            ]

    def captured() -> dict[int, str]:
        """Return the last captured name of each order."""
        values = [json.loads(each)["payload"] for each in values_of(bootstrap, f"cdc-{run}.public.orders")]
        return {each["after"]["id"]: each["after"]["item"] for each in values if each["after"]}

    worker = Worker(tmp_path, properties, [source, sink, changes])
    try:
        with worker:
            eventually(lambda: rows() == [(1, "pen", 1.5), (2, "ink", 3.0)], what=worker.log)
            eventually(lambda: captured() == {1: "pen", 2: "ink"}, what=worker.log)
            execute(shop, "INSERT INTO orders VALUES (3, 'nib', 0.25)")
            worker.kill()
        execute(shop, "INSERT INTO orders VALUES (4, 'cap', 2)")
        with worker:
            eventually(lambda: rows()[2:] == [(3, "nib", 0.25), (4, "cap", 2.0)], what=worker.log)
            eventually(lambda: captured() == {1: "pen", 2: "ink", 3: "nib", 4: "cap"}, what=worker.log)
            config = worker.api("GET", "/connectors/warehouse/config").body
            assert config["connector.class"] == "JdbcSink"
        assert "secret" not in worker.log
    finally:
        with postgresql.connect(database) as connection:
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active"
            )
