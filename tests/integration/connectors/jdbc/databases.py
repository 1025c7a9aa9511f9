"""The same view of three databases, for tests that are equal for all of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from tests.harness.databases.mariadb import MariaDb
from tests.harness.databases.postgresql import PostgreSql


class Sql:
    """One empty database: `execute` runs statements in a transaction of their own."""

    def __init__(self, kind: str, url: str, connect: Callable[[], Any]) -> None:
        self.kind = kind
        self.url = url
        self.connect = connect

    @property
    def settings(self) -> dict[str, str]:
        credentials = {"connection.user": "tests", "connection.password": "secret"}
        return {"connection.url": self.url, **({} if self.kind == "sqlite" else credentials)}

    def execute(self, *statements: str) -> None:
        connection = self.connect()
        try:
            cursor = connection.cursor()
            for each in statements:
                cursor.execute(each)
            connection.commit()
        finally:
            connection.close()

    def rows(self, query: str) -> Sequence[Any]:
        connection = self.connect()
        try:
            cursor = connection.cursor()
            cursor.execute(query)
            return list(cursor.fetchall())
        finally:
            connection.close()


def sql_of(kind: str, server: Any, folder: Any) -> Sql:
    if kind == "sqlite":
        path = folder / "test.db"
        return Sql(kind, f"jdbc:sqlite:{path}", lambda: sqlite3.connect(path))
    assert isinstance(server, PostgreSql | MariaDb)
    name = server.database()
    return Sql(kind, server.url(name), lambda: server.connect(name, autocommit=False))
