"""Records that come too late for their window go to a topic, not to nowhere.

The topic is `<application.id>-<store>-late`, where the store is the aggregate's, or for a join that of the
side they came by. A record is late if it is missing in at least one window that it belongs to, and is there
once however many they are. It is as the operator got it, with headers that say where it was read.
"""

from __future__ import annotations

from moldau.client.records import Headers
from moldau.pipelines.source.late_records import LATE_CONFIG, LATE_HEADER
from moldau.pipelines.streams.application.settings import StreamsSettings
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.stages import Stage, only_suppressed_by
from moldau.pipelines.streams.topology.stateful import Aggregate, StreamStreamJoin

__all__ = ["LATE_CONFIG", "LATE_HEADER", "is_windowed", "late_headers", "late_topics"]


def late_topics(stage: Stage, settings: StreamsSettings) -> tuple[str, ...]:
    """One for each side of a join, one for an aggregate; none at all where nothing is ever late."""
    names: tuple[str, ...] = ()
    operator = stage.operator
    if operator is not None and isinstance(operator.operation, StreamStreamJoin):
        names = (operator.operation.this_store, operator.operation.other_store)
    elif operator is not None and is_windowed(operator):
        names = (_store(stage, operator),)
    return tuple(settings.internal(f"{name}-late") for name in names)


def is_windowed(operator: Node) -> bool:
    return isinstance(operator.operation, Aggregate) and operator.operation.windows is not None


def _store(stage: Stage, aggregate: Node) -> str:
    """An aggregate that runs once more for a suppress has its own late records there."""
    alone = stage.name == aggregate.name or len(only_suppressed_by(aggregate)) == 1
    return aggregate.store.name if alone and aggregate.store is not None else stage.name


def late_headers(headers: Headers, topic: str, partition: int, offset: int) -> Headers:
    read = {"topic": topic, "partition": partition, "offset": offset}
    return [*headers, *((f"{LATE_HEADER}{name}", str(value).encode()) for name, value in read.items())]
