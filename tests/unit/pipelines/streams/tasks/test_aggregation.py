"""Aggregates write the records that Kafka Streams has written for the same input, whatever the batches."""

from __future__ import annotations

from random import Random

import pytest

from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from moldau.pipelines.streams.dsl.serdes import Serdes
from moldau.pipelines.streams.tasks.aggregation import Aggregation, Functions
from moldau.pipelines.streams.tasks.task import Operator, Out
from moldau.pipelines.streams.tasks.windowed_aggregation import WindowedAggregation
from moldau.pipelines.streams.topology.stateful import Aggregate
from tests.harness.streams.inputs import inputs
from tests.harness.streams.results import Written, comparable, recorded
from tests.harness.streams.scenes import SCENES
from tests.unit.pipelines.streams.tasks.task_run import TaskRun

TEXT = Serdes.string()


SCENES_OF_TASKS = ("reduce", "aggregate", "hopping", "sliding", "session", "session-aggregate", "tumbling")


COGROUPS = ("cogroup", "cogroup-tumbling", "cogroup-sliding", "cogroup-session")


def operator_of(scene: str, *, final: bool = False) -> Operator:
    builder = StreamsBuilder()
    SCENES[scene](builder)
    node = next(node for node in builder.build().nodes if isinstance(node.operation, Aggregate))
    assert isinstance(node.operation, Aggregate)
    assert node.value_serde is not None
    functions = Functions(node.operation, TEXT, (TEXT, TEXT), node.value_serde)
    if node.operation.windows is None:
        return Aggregation(functions)
    return WindowedAggregation(functions, node.operation.windows, final=final)


def written(scene: str, given: list[Out]) -> list[Written]:
    return comparable(
        scene,
        (
            Written(
                f"{scene}-out",
                (each.key or b"").hex(),
                None if each.value is None else each.value.hex(),
                str(each.timestamp),
            )
            for each in given
        ),
    )


@pytest.mark.parametrize("scene", [*SCENES_OF_TASKS, *COGROUPS])
@pytest.mark.parametrize("cuts", [0, 1, 7])
def test_results_are_those_recorded_from_kafka_streams(scene: str, cuts: int) -> None:
    records = [
        (int(each.topic.endswith("-right")), each.key, each.value, each.timestamp) for each in inputs(scene)
    ]
    places = sorted(Random(cuts).sample(range(1, len(records)), cuts))
    run = TaskRun(operator_of(scene))
    given: list[Out] = []
    for begin, end in zip([0, *places], [*places, len(records)], strict=True):
        given += run.batch(*records[begin:end])
    assert written(scene, given) == recorded()[scene]


def test_records_without_key_or_value_are_ignored() -> None:
    run = TaskRun(operator_of("reduce"))
    assert run.batch((0, None, "v1", 1), (0, "a", None, 2)) == []


def test_batch_emits_the_last_update_of_each_key() -> None:
    run = TaskRun(operator_of("reduce"))
    given = run.batch((0, "a", "v1", 5), (0, "b", "v2", 6), (0, "a", "v3", 4))
    assert [(out.key, out.value, out.timestamp) for out in given] == [(b"b", b"v2", 6), (b"a", b"v1,v3", 5)]
