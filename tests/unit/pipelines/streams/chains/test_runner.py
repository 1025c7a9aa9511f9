"""Chains of stateless steps: their output, exception handlers and dead letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from moldau.pipelines.streams.chains.planner import Planner
from moldau.pipelines.streams.chains.program import CHILD_HEADER, DEAD_LETTER, SIDE_OUTPUT, OutputRow
from moldau.pipelines.streams.chains.runner import Runner
from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from moldau.pipelines.streams.dsl.kstream import KStream
from moldau.pipelines.streams.dsl.parameters import Consumed, Joined, Produced, Repartitioned
from moldau.pipelines.streams.dsl.serdes import Serdes, Window, Windowed
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.settings import StreamsSettings
from moldau.pipelines.streams.topology.stages import stages

OUT = Produced.with_("string", "string")


def runner(
    write: Callable[[KStream], Any],
    consumed: Consumed | None = None,
    config: Mapping[str, Any] | None = None,
    partitions: int = 4,
) -> Runner:
    """Return the runner of a stateless program over the topic `in`."""
    builder = StreamsBuilder()
    write(builder.stream("in", consumed or Consumed.with_("string", "string")))
    settings = StreamsSettings.of(
        {"application.id": "app", "bootstrap.servers": "nowhere:1", **(config or {})}
    )
    planner = Planner(settings, {"in": partitions, "out": partitions})
    stage = next(each for each in stages(builder.build().nodes) if each.before)
    (chain,) = stage.before
    exits = {leaf: planner.leaf_exit(leaf, number) for number, leaf in enumerate(stage.leaves)}
    known = {leaf: leaving for leaf, leaving in exits.items() if leaving is not None}
    return Runner(planner.program(chain, known, planner.origin_serdes(chain.origin)))


def row(
    key: bytes | None, value: bytes | None, offset: int = 0, timestamp: int = 5, child: str | None = None
) -> tuple[Any, ...]:
    return key, value, timestamp, [("h", b"1")], "in", 2, offset, None, child


def pairs(rows: list[OutputRow]) -> list[tuple[bytes | None, bytes | None]]:
    return [(each.key, each.value) for each in rows]


def test_record_passes_all_steps_and_keeps_its_origin() -> None:
    run = runner(
        lambda stream: (
            stream.filter(lambda key, value: value != "no")
            .map_values(str.upper)
            .map(lambda key, value: (f"{key}!", value))
            .to("out", OUT)
        )
    )
    (row_out,) = run.run([row(b"a", b"yes", 7), row(b"b", b"no", 8)])
    assert row_out == OutputRow(0, b"a!", b"YES", 5, [("h", b"1")], "in", 2, 7, 0, "out", None)


def test_rows_of_one_record_are_numbered() -> None:
    run = runner(lambda stream: stream.flat_map_values(str.split).to("out", OUT))
    assert [(each.value, each.seq) for each in run.run([row(b"a", b"x y z")])] == [
        (b"x", 0),
        (b"y", 1),
        (b"z", 2),
    ]


def test_record_goes_to_the_first_matching_branch_and_to_every_sink() -> None:
    def write(stream: KStream) -> None:
        branches = (
            stream.split("split-").branch(lambda key, value: value == "1", "one").default_branch("rest")
        )
        branches["split-one"].to("ones", OUT)
        branches["split-rest"].map_values(lambda key, value: key + value).to("rest", OUT)
        stream.to("all", OUT)

    rows = runner(write).run([row(b"a", b"1"), row(b"b", b"2")])
    assert [(each.target, each.value) for each in rows] == [
        ("ones", b"1"),
        ("all", b"1"),
        ("rest", b"b2"),
        ("all", b"2"),
    ]


def test_failing_function_is_named_with_its_record() -> None:
    run = runner(
        lambda stream: stream.map_values(int, name="numbers").to("out", Produced.with_("string", "long"))
    )
    with pytest.raises(StreamsException, match="numbers failed on in-2@9: ValueError: invalid literal"):
        run.run([row(b"a", b"7", 8), row(b"a", b"seven", 9)])


def test_processing_exception_handler_continue_skips_only_the_failing_branch() -> None:
    def write(stream: KStream) -> None:
        stream.map_values(int).to("out", Produced.with_("string", "long"))
        stream.to("copy", OUT)

    run = runner(write, config={"processing.exception.handler": "continue"})
    assert [each.target for each in run.run([row(b"a", b"seven")])] == ["copy"]


@pytest.mark.parametrize("handler", ["fail", "continue", "LogAndContinueExceptionHandler"])
def test_deserialization_exception_handler_fails_or_continues(handler: str) -> None:
    run = runner(
        lambda stream: stream.to("out"),
        Consumed.with_("string", "json"),
        {"deserialization.exception.handler": handler},
    )
    if handler == "fail":
        with pytest.raises(StreamsException, match="The record in-2@3 cannot be deserialized"):
            run.run([row(b"a", b"{", 3)])
    else:
        assert pairs(run.run([row(b"a", b"{", 3), row(b"a", b"{}", 4)])) == [(b"a", b"{}")]


def test_dead_letter_has_the_original_bytes_and_error_headers() -> None:
    run = runner(
        lambda stream: stream.to("out"),
        Consumed.with_("string", "json"),
        {"errors.dead.letter.queue.topic.name": "dead"},
    )
    (row_out,) = run.run([row(b"a", b"{", 3)])
    assert (row_out.exit, row_out.target, row_out.key, row_out.value) == (DEAD_LETTER, "dead", b"a", b"{")
    headers = dict(row_out.headers)
    assert headers["h"] == b"1"
    assert headers["__streams.errors.topic"] == b"in"
    assert headers["__streams.errors.partition"] == b"2"
    assert headers["__streams.errors.offset"] == b"3"
    assert b"not JSON" in (headers["__streams.errors.message"] or b"")


def test_record_for_a_named_child_is_marked_with_a_header_in_topics() -> None:
    def write(stream: KStream) -> None:
        stream.map_values(str.upper, name="upper").to("out", OUT)
        stream.map_values(str.title, name="title").to("out", OUT)
        stream.repartition(Repartitioned(name="again"))

    run = runner(write)
    assert len(run.run([row(b"a", b"x")])) == 3
    assert pairs(run.run([row(b"a", b"x", child="upper")])) == [(b"a", b"X")]
    (through,) = run.run([row(b"a", b"x", child="again-repartition-filter")])
    assert (through.target, through.headers) == ("app-again-repartition", [("h", b"1")])
    program = replace(run.program, first_exits=(replace(run.program.steps[-1].exits[0], topic="between"),))
    (_, between) = Runner(program).run([row(b"a", b"x", child="upper")])
    assert (between.target, between.headers) == ("between", [("h", b"1"), (CHILD_HEADER, b"upper")])


@pytest.mark.parametrize("handler", ["fail", "continue"])
def test_failing_topic_and_timestamp_extractors_use_the_processing_exception_handler(handler: str) -> None:
    def write(stream: KStream) -> None:
        stream.to(lambda key, value, record: 1 / 0, OUT)  # type: ignore[arg-type, return-value]

    def no_time(record: Any, highest: int) -> int:
        raise ValueError("no time")

    config = {"processing.exception.handler": handler}
    consumed = Consumed("string", "string", timestamp_extractor=no_time)
    runs = [runner(write, config=config), runner(lambda stream: stream.to("out", OUT), consumed, config)]
    for run, message in zip(
        runs,
        ("SINK.* failed on in-2@3: ZeroDivisionError", "extractor failed on in-2@3: ValueError"),
        strict=True,
    ):
        if handler == "fail":
            with pytest.raises(StreamsException, match=message):
                run.run([row(b"a", b"x", 3)])
        else:
            assert run.run([row(b"a", b"x", 3)]) == []


@pytest.mark.parametrize("join", ["join", "left_join"])
def test_repartition_drops_null_keys_unless_a_left_join_follows(join: str) -> None:
    def write(stream: KStream) -> None:
        chosen, joined = stream.select_key(lambda key, value: key), Joined.with_("string", "string", "string")
        getattr(chosen, join)(stream.to_table(), lambda one, two: one, joined=joined)

    found = runner(write).run([row(None, b"x"), row(b"a", b"y")])
    through = [each for each in found if each.target is not None and each.target.endswith("-repartition")]
    assert [each.key for each in through] == ([b"a"] if join == "join" else [None, b"a"])


def test_value_that_a_sink_cannot_serialize_is_named() -> None:
    run = runner(lambda stream: stream.map_values(len).to("out", OUT))
    with pytest.raises(StreamsException, match="in-2@0: out: a int is not a string"):
        run.run([row(b"a", b"12")])


def test_timestamp_extractor_receives_the_highest_timestamp_of_the_partition() -> None:
    def extract(record: Any, highest: int) -> int:
        return int(record.value) if record.value.isdigit() else highest

    run = runner(lambda stream: stream.to("out", OUT), Consumed("string", "string", extract))
    rows = run.run([row(b"a", b"30"), row(b"a", b"20"), row(b"a", b"x")])
    assert [each.timestamp for each in rows] == [30, 20, 30]
    other = (b"a", b"7", 5, [], "other", 2, 0, None, None)
    rows = run.run([other, (b"a", b"x", *other[2:]), row(b"a", b"x")])
    assert [each.timestamp for each in rows] == [7, 7, 30]


def test_record_with_a_negative_timestamp_is_dropped() -> None:
    def extract(record: Any, highest: int) -> int:
        return int(record.value)

    run = runner(lambda stream: stream.to("out", OUT), Consumed("string", "string", extract))
    rows = run.run([row(b"a", b"-1"), row(b"b", b"0"), row(b"c", b"-7")])
    assert [(each.key, each.timestamp) for each in rows] == [(b"b", 0)]


def test_topic_extractor_and_partitioner_choose_the_target() -> None:
    run = runner(
        lambda stream: stream.to(
            lambda key, value, record: f"{record.topic}-{key}",
            Produced("string", "string"),
        )
    )
    assert run.run([row(b"a", b"1")])[0].target == "in-a"
    chosen = Produced("string", "string", lambda topic, key, value, partitions: int(value) % partitions)
    assert runner(lambda stream: stream.to("out", chosen)).run([row(b"a", b"7")])[0].target_partition == 3


def test_windowed_keys_are_partitioned_by_the_key() -> None:
    """The partition is the same for every window of a key."""
    produced = Produced(Serdes.time_windowed("string", 10), "string")
    run = runner(
        lambda stream: stream.select_key(lambda key, value: Windowed(key, Window(int(value), 0))).to(
            "out", produced
        )
    )
    rows = run.run([row(b"a", b"%d" % start) for start in range(50)])
    assert len({each.target_partition for each in rows}) == 1
    assert rows[3].key == b"a" + (3).to_bytes(8)


def test_table_filter_emits_tombstones() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", Consumed.with_("string", "string"))
    table.filter(lambda key, value: value == "1").map_values(lambda value: value * 2).to_stream().to(
        "out", OUT
    )
    settings = StreamsSettings.of({"application.id": "app", "bootstrap.servers": "nowhere:1"})
    planner = Planner(settings, {"in": 1, "out": 1})
    stage = next(each for each in stages(builder.build().nodes) if each.before)
    (chain,) = stage.before
    leaving = planner.leaf_exit(stage.leaves[0], 0)
    assert leaving is not None
    program = planner.program(chain, {stage.leaves[0]: leaving}, planner.origin_serdes(chain.origin))
    rows = Runner(program).run([row(b"a", b"1"), row(b"a", b"2"), row(b"a", None), row(None, b"1")])
    assert pairs(rows) == [(b"a", b"11"), (b"a", None), (b"a", None)]


def test_rows_with_a_target_are_passed_through() -> None:
    run = runner(lambda stream: stream.map_values(int).to("out", Produced.with_("string", "long")))
    (row_out,) = run.run([(b"k", b"not a number", 5, [], None, 1, None, "changelog", None)])
    assert (row_out.exit, row_out.target, row_out.target_partition, row_out.value) == (
        SIDE_OUTPUT,
        "changelog",
        1,
        b"not a number",
    )
