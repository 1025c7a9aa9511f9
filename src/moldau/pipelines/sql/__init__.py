"""ksqlDB's SQL over topics, executed by Spark.

    from moldau import pipelines
    from moldau.pipelines.sql import SqlEngine

    with SqlEngine(pipelines.session("sql"), "localhost:9092") as sql:
        for result in sql.execute("SELECT * FROM orders EMIT CHANGES LIMIT 3;"):
            ...

`parse` turns text into statements, and `compile` turns a SELECT into Spark SQL over views; neither needs a
Spark session. `catalog` stores the streams, tables and queries that are defined. `run` executes statements:
`frames` and `records` create views of topics, `persistent` and `streaming` run persistent queries, `select`
and `lookups` run push and pull queries. `engine` ties them together.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.pipelines.sql.engine import SqlEngine
    from moldau.pipelines.sql.errors import SqlError
    from moldau.pipelines.sql.results import Message, Rows

__all__ = ["Message", "Rows", "SqlEngine", "SqlError"]

_HOMES = {"Message": "results", "Rows": "results", "SqlEngine": "engine", "SqlError": "errors"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
