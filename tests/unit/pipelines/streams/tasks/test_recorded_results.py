"""Tasks write the records that Kafka Streams has written for the same input, whatever the batch size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from moldau.pipelines.streams.dsl.processors import Processor
from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.dsl.stores import Stores
from moldau.pipelines.streams.tasks.grouped_tables import (
    AggregateFunctions,
    AggregateSerdes,
    Regroup,
    RegroupSerdes,
    TableAggregation,
)
from moldau.pipelines.streams.tasks.processors import ProcessorTask, ProcessSettings
from moldau.pipelines.streams.tasks.state import MemoryMap
from moldau.pipelines.streams.tasks.table_joins import JoinSerdes, Lookup, TableJoin
from moldau.pipelines.streams.tasks.task import Operator, Out, Row, run
from moldau.pipelines.streams.topology.graph import TableStore
from moldau.pipelines.streams.topology.stateful import TableAggregate
from tests.harness.streams.inputs import inputs
from tests.harness.streams.results import comparable, recorded
from tests.harness.streams.scenes import LONG, TEXT, Numbering, Summing, minus, number, plus, together
from tests.unit.pipelines.streams.tasks.task_run import as_written

SERDES = JoinSerdes(TEXT, TEXT, TEXT, TEXT)
PORTS = {"in": 0, "left": 0, "right": 1, "table": 1}


def joined(_key: Any, one: Any, two: Any) -> str:
    return together(one, two)


def aggregate(functions: AggregateFunctions, serde: Serde) -> list[Operator]:
    """The two operators of an aggregated table, which have a repartition topic between them."""
    regroup = Regroup(
        lambda key, value: (f"n{number(value) % 3}", value), RegroupSerdes(TEXT, TEXT, TEXT, TEXT)
    )
    return [regroup, TableAggregation(functions, AggregateSerdes(TEXT, TEXT, serde))]


def processing(supplier: type[Processor], store: str, *, fixed_key: bool) -> list[Operator]:
    stores = (Stores.key_value_store(store, TEXT, TEXT).with_logging_disabled(),)
    return [ProcessorTask(ProcessSettings("app", supplier, stores, fixed_key, TEXT, TEXT, TEXT, TEXT))]


COUNT = AggregateFunctions(int, lambda _, __, count: count + 1, lambda _, __, count: count - 1)
SUM = AggregateFunctions(lambda: "v0", plus, minus)
REDUCE = AggregateFunctions.of(
    TableAggregate(
        "reduce",
        TableStore("store", queryable=False, materialized=True),
        None,
        lambda aggregate, value: plus("", value, aggregate),
        lambda aggregate, value: minus("", value, aggregate),
    )
)
OPERATORS: dict[str, list[Operator]] = {
    "table-lookup": [Lookup(joined, SERDES, left=False)],
    "table-lookup-left": [Lookup(joined, SERDES, left=True)],
    "table-join": [TableJoin("inner", joined, SERDES)],
    "table-left-join": [TableJoin("left", joined, SERDES)],
    "table-outer-join": [TableJoin("outer", joined, SERDES)],
    "table-count": aggregate(COUNT, LONG),
    "table-reduce": aggregate(REDUCE, TEXT),
    "table-aggregate": aggregate(SUM, TEXT),
    "process": processing(Summing, "sums", fixed_key=False),
    "process-values": processing(Numbering, "seen", fixed_key=True),
}


class Chain:
    """Operators that follow each other, with their state."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self._operators = [(each, {name: MemoryMap() for name in each.maps}) for each in operators]

    def batch(self, rows: list[Row]) -> list[Out]:
        given: list[Out] = []
        for operator, maps in self._operators:
            given = run(operator, 0, maps, rows, 0)
            rows = [
                Row(0, out.key, out.value, out.timestamp, offset=place) for place, out in enumerate(given)
            ]
        return given


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("scene", OPERATORS)
def test_results_are_those_recorded_from_kafka_streams(scene: str, size: int) -> None:
    chain, given = Chain(OPERATORS[scene]), []
    rows = [_row(place, *record) for place, record in enumerate(inputs(scene))]
    for begin in range(0, len(rows), size):
        given += chain.batch(rows[begin : begin + size])
    assert comparable(scene, as_written(scene, given)) == recorded()[scene]


def _row(place: int, topic: str, key: str, value: str | None, timestamp: int) -> Row:
    port = PORTS[topic.rpartition("-")[2]]
    data = None if value is None else value.encode()
    return Row(port, key.encode(), data, timestamp, topic=topic, offset=place)
