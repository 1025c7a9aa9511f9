"""The context of statements: session, catalog, queries; and the translation of Spark's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from moldau.base.errors import ErrorCode
from moldau.client import AdminClient, KafkaError, NewTopic
from moldau.client.admin.client import checked
from moldau.pipelines.sql.catalog.catalog import Catalog
from moldau.pipelines.sql.catalog.topic import CatalogTopic
from moldau.pipelines.sql.errors import Place, SqlError, suggestion
from moldau.pipelines.sql.properties import Settings
from moldau.pipelines.sql.run.frames import Frames
from moldau.pipelines.sql.run.lookups import Lookups
from moldau.pipelines.sql.run.persistent import PersistentQueries


@dataclass(slots=True)
class Context:
    """The parts of an engine that statements use."""

    spark: SparkSession
    bootstrap_servers: str
    #: The configs of the client.
    config: Mapping[str, str] = field(repr=False)
    admin: AdminClient
    store: CatalogTopic
    frames: Frames
    queries: PersistentQueries
    lookups: Lookups
    settings: Settings

    @property
    def catalog(self) -> Catalog:
        return self.store.catalog

    def partitions(self, topic: str) -> int | None:
        """Return the number of partitions of a topic; None if the topic does not exist."""
        described = self.admin.describe_topics([topic])[topic]
        if isinstance(described, KafkaError):
            if described.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return None
            raise described
        return len(described.partitions)

    def create_topic(self, name: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> None:
        checked(self.admin.create_topics([NewTopic(name, partitions, replicas, configs=configs)]))


@contextmanager
def spark_errors(place: Place | None) -> Iterator[None]:
    """Turn Spark's errors into errors of the statement."""
    try:
        yield
    except PySparkException as error:
        raise _explained(error, place) from error


def _explained(error: PySparkException, place: Place | None) -> SqlError:
    condition = error.getCondition() or ""
    parameters: Mapping[str, str] = error.getMessageParameters() or {}
    if condition.startswith("UNRESOLVED_ROUTINE"):
        name = parameters.get("routineName", "").strip("`").rpartition(".")[2].strip("`")
        hint = suggestion(name, _function_names()) or "SHOW FUNCTIONS lists them."
        return SqlError(f"Unknown function {name}", place.of(name) if place else None, hint)
    text = str(error).partition("\n")[0].partition("] ")[2] or str(error).partition("\n")[0]
    text = text.partition(" SQLSTATE")[0].replace("`__source_0`.", "")
    word = _named_word(parameters)
    return SqlError(text.rstrip(".;"), place.of(word) if place else None)


def _named_word(parameters: Mapping[str, str]) -> str | None:
    """Return the function or column that Spark's message names."""
    for name in ("functionName", "sqlExpr"):
        words = re.findall(r"\w+(?=\()|(?<=`)[^`.]+(?=`)|\w+", parameters.get(name, ""))
        if words:
            return str(words[0])
    return None


def _function_names() -> list[str]:
    from pyspark.sql import functions

    from moldau.pipelines.sql.compile.function_tables import AGGREGATES, SCALARS

    spark = [name for name in dir(functions) if name.islower() and not name.startswith("_")]
    return [*SCALARS, *AGGREGATES, *(name.upper() for name in spark)]
