"""SQL over topics, in ksqlDB's words, run by Spark.

    from moldau import pipelines
    from moldau.pipelines.sql import SqlEngine

    with SqlEngine(pipelines.session("sql"), "localhost:9092") as sql:
        for result in sql.execute("SELECT * FROM orders EMIT CHANGES LIMIT 3;"):
            ...

`dialect` and the parsers turn text into `statements`; `compiler` (with `scope`, `selection`, `query_text`)
turns a SELECT into Spark SQL over views; all of these know nothing of Spark. `frames` makes the views from
topics (`decoding`), `persistent` runs queries that write to topics (`encoding`, `late`, `recomputing`),
`reading` and `lookups` answer readers, and `engine` executes statements.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.pipelines.sql.engine import SqlEngine
    from moldau.pipelines.sql.errors import SqlError
    from moldau.pipelines.sql.run.results import Message, Rows

__all__ = ["Message", "Rows", "SqlEngine", "SqlError"]

_HOMES = {"Message": "run.results", "Rows": "run.results", "SqlEngine": "engine", "SqlError": "errors"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
