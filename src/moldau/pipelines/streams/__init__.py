"""Kafka Streams' words in Python, run by Spark.

    from moldau.pipelines.streams import Consumed, Grouped, KafkaStreams, Produced, StreamsBuilder

    builder = StreamsBuilder()
    words = builder.stream("lines", Consumed.with_("string", "string")).flat_map_values(str.split)
    counts = words.group_by(lambda _, word: word, Grouped.with_("string", "string")).count()
    counts.to_stream().to("counts", Produced.with_("string", "long"))
    config = {"application.id": "words", "bootstrap.servers": "localhost:9092"}
    with KafkaStreams(builder.build(), config) as streams:
        streams.await_termination()

How it works. The DSL (`builder`, `kstream`, `grouped`, `ktable`) makes a graph of nodes (`graph`; steps are
`operations`, operators with state are `stateful`) with Kafka Streams' names; `topology` checks and
`describe`s it. `stages` cuts it into stages, each with at most one stateful operator; a stage is one Spark
query. `programs` says which serdes and topics a stage has, `chain` runs its steps without state, fused into
one function, and `tasks` its operators with state as plain Python. `physical` makes data frames of all that,
with Spark's own operators where there are any. `application` creates internal topics and starts the queries.
All but `physical` and `application` is pure and needs no Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from moldau.pipelines.streams.dsl.branches import BranchedKStream
from moldau.pipelines.streams.dsl.builder import GlobalKTable, StreamsBuilder
from moldau.pipelines.streams.dsl.cogrouped import CogroupedKStream
from moldau.pipelines.streams.dsl.grouped import KGroupedStream, SessionWindowedKStream, TimeWindowedKStream
from moldau.pipelines.streams.dsl.grouped_table import KGroupedTable
from moldau.pipelines.streams.dsl.kstream import KStream
from moldau.pipelines.streams.dsl.ktable import KTable
from moldau.pipelines.streams.dsl.parameters import (
    Branched,
    BufferConfig,
    Consumed,
    EmitStrategy,
    Grouped,
    Joined,
    Materialized,
    Named,
    Printed,
    Produced,
    Repartitioned,
    StreamJoined,
    Suppressed,
    TableJoined,
)
from moldau.pipelines.streams.dsl.processors import (
    FixedKeyProcessor,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    ValueTransformerWithKey,
)
from moldau.pipelines.streams.dsl.serdes import Serde, Serdes, Window, Windowed
from moldau.pipelines.streams.dsl.stores import StoreBuilder, Stores
from moldau.pipelines.streams.dsl.windows import JoinWindows, SessionWindows, SlidingWindows, TimeWindows
from moldau.pipelines.streams.errors import StreamsException, TopologyException
from moldau.pipelines.streams.topology.topology import Topology

if TYPE_CHECKING:
    from moldau.pipelines.streams.application.application import KafkaStreams, State

__all__ = [
    "Branched",
    "BranchedKStream",
    "BufferConfig",
    "CogroupedKStream",
    "Consumed",
    "EmitStrategy",
    "FixedKeyProcessor",
    "GlobalKTable",
    "Grouped",
    "JoinWindows",
    "Joined",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "KafkaStreams",
    "Materialized",
    "Named",
    "Printed",
    "Processor",
    "ProcessorContext",
    "Produced",
    "PunctuationType",
    "Record",
    "Repartitioned",
    "Serde",
    "Serdes",
    "SessionWindowedKStream",
    "SessionWindows",
    "SlidingWindows",
    "State",
    "StoreBuilder",
    "Stores",
    "StreamJoined",
    "StreamsBuilder",
    "StreamsException",
    "Suppressed",
    "TableJoined",
    "TimeWindowedKStream",
    "TimeWindows",
    "Topology",
    "TopologyException",
    "ValueTransformerWithKey",
    "Window",
    "Windowed",
]


def __getattr__(name: str) -> Any:
    # These need Spark, which the rest does not.
    if name in ("KafkaStreams", "State"):
        return getattr(import_module(f"{__name__}.application.application"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
