"""Faults under load: process of a task, Spark, worker, broker and database are killed in turn; rows compared.

Rows of a table go through the JDBC source to a topic, and from there through the JDBC sink to another table;
change data capture follows a table with changes. It is here and not among the tests of Spark, as it is long.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.testing import Cluster
from tests.harness.connect import Worker
from tests.harness.databases.postgresql import PostgreSql
from tests.harness.mirror import read_all, values_of
from tests.harness.waiting import eventually
from tests.integration.connect.conftest import group_properties
from tests.pipelines.connect.test_spark import START_S, processes

pytestmark = pytest.mark.interop

_BETWEEN_S = 3.0


class Writer:
    """Inserts rows without pause, and changes and deletes others, also while the database restarts."""

    def __init__(self, server: PostgreSql, database: str) -> None:
        self._server, self._database = server, database
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        import psycopg

        while not self._stop.is_set():
            try:
                with self._server.connect(self._database) as connection:
                    self._write(connection)
            except psycopg.Error:
                self._stop.wait(0.2)

    def _write(self, connection: Any) -> None:
        choice = random.Random(7)
        while not self._stop.wait(0.01):
            row = connection.execute("INSERT INTO orders (item) VALUES ('new') RETURNING id").fetchone()
            connection.execute("INSERT INTO events SELECT %s, 'new' ON CONFLICT DO NOTHING", row)
            other = choice.randint(1, row[0])
            if choice.random() < 0.5:
                connection.execute("UPDATE events SET item = 'changed ' || %s WHERE id = %s", [row[0], other])
            else:
                connection.execute("DELETE FROM events WHERE id = %s", [other])


@pytest.fixture
def server() -> Iterator[PostgreSql]:
    started = PostgreSql()
    yield started
    started.close()


def connectors(server: PostgreSql, database: str) -> dict[str, dict[str, str]]:
    login = {
        "connection.url": server.url(database),
        "connection.user": "tests",
        "connection.password": "secret",
        "connection.backoff.ms": "500",
    }
    return {
        "rows": {
            "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
            **login,
            "mode": "incrementing",
            "incrementing.column.name": "id",
            "table.whitelist": "orders",
            "topic.prefix": "rows-",
            "poll.interval.ms": "100",
        },
        "copies": {
            "connector.class": "JdbcSink",
            **login,
            "topics": "rows-orders",
            "table.name.format": "copies",
            "insert.mode": "upsert",
            "pk.mode": "record_value",
            "pk.fields": "id",
            "auto.create": "true",
            "consumer.override.session.timeout.ms": "6000",
        },
        "changes": {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": "tests",
            "database.password": "secret",
            "database.dbname": database,
            "topic.prefix": "cdc",
            "table.include.list": "public.events",
            "slot.name": "faults",
            "status.update.interval.ms": "500",
            "retriable.restart.connector.wait.ms": "500",
            "errors.max.retries": "-1",
        },
    }


@pytest.mark.timeout(900)
def test_rows_are_complete_after_every_fault(server: PostgreSql, tmp_path: Path) -> None:
    database = server.database()
    with server.connect(database) as connection:
        connection.execute("CREATE TABLE orders (id SERIAL PRIMARY KEY, item TEXT NOT NULL)")
        connection.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, item TEXT NOT NULL)")
    with Cluster() as cluster:
        properties = {
            **group_properties(cluster.bootstrap_servers, "faults"),
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "tasks.host": "spark",
            "spark.master": "local[8]",
        }
        worker = Worker(tmp_path, properties, command="connect-distributed").start()
        writer = Writer(server, database)
        try:
            names = connectors(server, database)
            for name, config in names.items():
                worker.create(name, config)
            _wait_for(worker, names)
            for fault in ("tasks", "spark", "worker", "broker", "database") * 2:
                time.sleep(_BETWEEN_S)
                _break(fault, worker, cluster, server)
                _wait_for(worker, names)
            writer.stop()
            _compare(worker, cluster.bootstrap_servers, server, database)
        finally:
            writer.stop()
            worker.kill()


def _break(fault: str, worker: Worker, cluster: Cluster, server: PostgreSql) -> None:
    if fault == "tasks":
        for process in processes(worker, "python"):
            os.kill(process, signal.SIGKILL)
    elif fault == "spark":
        for process in processes(worker, "java"):
            os.kill(process, signal.SIGKILL)
        assert worker.wait() == 1
        worker.start()
    elif fault == "worker":
        worker.kill()
        worker.start()
    elif fault == "broker":
        cluster.kill()
        time.sleep(_BETWEEN_S)
        cluster.restart()
    else:
        server.stop()
        time.sleep(_BETWEEN_S)
        server.start()


def _wait_for(worker: Worker, names: dict[str, Any]) -> None:
    for name in names:
        worker.wait_for(name, timeout=START_S)


def _compare(worker: Worker, bootstrap: str, server: PostgreSql, database: str) -> None:
    def table(name: str) -> list[Any]:
        with server.connect(database) as connection:
            found = connection.execute("SELECT to_regclass(%s)", [name]).fetchone()
            return [] if found[0] is None else connection.execute(f"TABLE {name} ORDER BY 1").fetchall()

    orders, events = table("orders"), table("events")
    assert len(orders) > 500
    eventually(lambda: table("copies") == orders, timeout=START_S, what=worker.log[-3000:])
    rows = {json.loads(each)["payload"]["id"] for each in values_of(bootstrap, "rows-orders")}
    assert rows == {each[0] for each in orders}

    def captured() -> list[Any]:
        """Return the table that the changes make; repeated changes come in their order."""
        state: dict[int, str] = {}
        values = (each.value() for each in read_all(bootstrap, "cdc.public.events"))
        for payload in (json.loads(each)["payload"] for each in values if each is not None):
            if payload["after"] is None:
                state.pop(payload["before"]["id"], None)
            else:
                state[payload["after"]["id"]] = payload["after"]["item"]
        return sorted(state.items())

    eventually(lambda: captured() == events, timeout=START_S, what=worker.log[-3000:])
