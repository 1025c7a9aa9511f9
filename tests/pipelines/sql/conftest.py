"""Engines with their own catalog and state directory."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.pipelines.sql.results import Message, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from moldau.pipelines.sql.engine import SqlEngine
    from moldau.testing import Cluster

NewEngine = Callable[[], "SqlEngine"]


@pytest.fixture
def new_engine(spark: SparkSession, broker: Cluster, tmp_path: Path) -> Iterator[NewEngine]:
    """Create engines that share a catalog and a state directory."""
    from moldau.pipelines.sql.engine import SqlEngine

    catalog = f"_sql_{uuid.uuid4().hex[:8]}"
    made: list[SqlEngine] = []

    def make() -> SqlEngine:
        settings = {"auto.offset.reset": "earliest", "trigger": "300 milliseconds"}
        made.append(
            SqlEngine(
                spark,
                broker.bootstrap_servers,
                state_dir=tmp_path / "state",
                settings=settings,
                catalog_topic=catalog,
                follow=False,
            )
        )
        # One task per stage is enough for little data.
        made[-1].spark.conf.set("spark.sql.shuffle.partitions", "1")
        return made[-1]

    yield make
    for engine in made:
        engine.close()


def run(engine: SqlEngine, text: str) -> list[list[list[Any]] | str]:
    """Execute the statements of a text, and return the rows or the message of each."""
    found: list[list[list[Any]] | str] = []
    for result in engine.execute(text):
        if isinstance(result, Message):
            found.append(result.text)
        elif isinstance(result, Rows):
            found.append([list(row) for row in result.rows])
    return found


def rows(engine: SqlEngine, text: str) -> list[list[Any]]:
    (found,) = run(engine, text)
    assert isinstance(found, list)
    return found
