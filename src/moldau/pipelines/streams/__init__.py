"""The Kafka Streams DSL and Processor API in Python, executed by Spark.

    from moldau.pipelines.streams import Consumed, Grouped, KafkaStreams, Produced, StreamsBuilder

    builder = StreamsBuilder()
    words = builder.stream("lines", Consumed.with_("string", "string")).flat_map_values(str.split)
    counts = words.group_by(lambda _, word: word, Grouped.with_("string", "string")).count()
    counts.to_stream().to("counts", Produced.with_("string", "long"))
    config = {"application.id": "words", "bootstrap.servers": "localhost:9092"}
    with KafkaStreams(builder.build(), config) as streams:
        streams.await_termination()

How it works. The DSL (`dsl`) builds a graph of nodes with the names that Kafka Streams gives them
(`topology.graph`; stateless steps are in `operations`, stateful operators in `stateful`). `topology` checks
it, describes it, and divides it into stages, each with at most one stateful operator; a stage is one Spark
query. `chains` decides which serdes and topics a stage uses, and runs its stateless steps, fused into one
function. `tasks` runs stateful operators in plain Python. `physical` translates stages to data frames, with
Spark's own operators where possible. `application` creates the internal topics and starts the queries. Only
`physical` and `application` need Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from moldau.pipelines.streams.dsl.builder import GlobalKTable, StreamsBuilder
from moldau.pipelines.streams.dsl.cogrouped_stream import CogroupedKStream
from moldau.pipelines.streams.dsl.grouped_stream import (
    KGroupedStream,
    SessionWindowedKStream,
    TimeWindowedKStream,
)
from moldau.pipelines.streams.dsl.grouped_table import KGroupedTable
from moldau.pipelines.streams.dsl.kstream import BranchedKStream, KStream
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
    from moldau.pipelines.streams.application.kafka_streams import KafkaStreams, State

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
    # These import pyspark, which building a topology does not need.
    if name in ("KafkaStreams", "State"):
        return getattr(import_module(f"{__name__}.application.kafka_streams"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
