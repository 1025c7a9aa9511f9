"""What all statements are executed with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession

from moldau.base.errors import ErrorCode
from moldau.client import AdminClient, KafkaError, NewTopic
from moldau.client.admin import checked
from moldau.pipelines.sql.catalog import Catalog
from moldau.pipelines.sql.catalog_topic import CatalogTopic
from moldau.pipelines.sql.errors import Place, SqlError, suggestion
from moldau.pipelines.sql.frames import Frames
from moldau.pipelines.sql.persistent import PersistentQueries
from moldau.pipelines.sql.properties import Settings


@dataclass(slots=True)
class Context:
    spark: SparkSession
    bootstrap_servers: str
    #: As the client takes it.
    config: Mapping[str, str]
    admin: AdminClient
    store: CatalogTopic
    frames: Frames
    queries: PersistentQueries
    settings: Settings

    @property
    def catalog(self) -> Catalog:
        return self.store.catalog

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has; None if there is no such topic."""
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
    """What Spark finds wrong with a query, as an error of the statement."""
    try:
        yield
    except (AnalysisException, ParseException) as error:
        raise _explained(error, place) from error


def _explained(error: PySparkException, place: Place | None) -> SqlError:
    condition = error.getCondition() or ""
    parameters: Mapping[str, str] = error.getMessageParameters() or {}
    if condition.startswith("UNRESOLVED_ROUTINE"):
        name = parameters.get("routineName", "").strip("`").rpartition(".")[2].strip("`")
        hint = suggestion(name, _function_names()) or "SHOW FUNCTIONS lists them."
        return SqlError(f"There is no function {name}", _found(name, place), hint)
    text = str(error).partition("\n")[0].partition("] ")[2] or str(error)
    text = text.partition(" SQLSTATE")[0].replace("`__source_0`.", "")
    return SqlError(text.rstrip(".;"), place)


def _function_names() -> list[str]:
    from pyspark.sql import functions

    from moldau.pipelines.sql.functions import AGGREGATES, SCALARS

    spark = [name for name in dir(functions) if name.islower() and not name.startswith("_")]
    return [*SCALARS, *AGGREGATES, *(name.upper() for name in spark)]


def _found(word: str, place: Place | None) -> Place | None:
    """The place of a word inside of a place."""
    if place is None:
        return None
    at = place.text.upper().find(word.upper(), place.start, place.end)
    return Place(place.text, at, at + len(word)) if at >= 0 and word else place
