"""Chains of steps without state: what leaves them, what they say when something fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from moldau.pipelines.streams.application.settings import StreamsSettings
from moldau.pipelines.streams.chains.planner import Planner
from moldau.pipelines.streams.chains.program import CHILD_HEADER, DEAD_LETTER, SIDE_OUTPUT, Left
from moldau.pipelines.streams.chains.runner import Runner
from moldau.pipelines.streams.dsl.builder import StreamsBuilder
from moldau.pipelines.streams.dsl.kstream import KStream
from moldau.pipelines.streams.dsl.parameters import Consumed, Joined, Produced, Repartitioned
from moldau.pipelines.streams.dsl.serdes import Serdes, Window, Windowed
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.topology.stages import stages

OUT = Produced.with_("string", "string")


def runner(
    write: Callable[[KStream], Any],
    consumed: Consumed | None = None,
    config: Mapping[str, Any] | None = None,
    partitions: int = 4,
) -> Runner:
    """What runs for a program over the topic `in`, all of it without state."""
    builder = StreamsBuilder()
    write(builder.stream("in", consumed or Consumed.with_("string", "string")))
    settings = StreamsSettings.of(
        {"application.id": "app", "bootstrap.servers": "nowhere:1", **(config or {})}
    )
    planner = Planner(settings, {"in": partitions, "out": partitions})
    stage = next(each for each in stages(builder.build().nodes) if each.before)
    (leg,) = stage.before
    exits = {leaf: planner.leaf_exit(leaf, number) for number, leaf in enumerate(stage.leaves)}
    known = {leaf: leaving for leaf, leaving in exits.items() if leaving is not None}
    return Runner(planner.program(leg, known, planner.origin_serdes(leg.origin)))


def row(
    key: bytes | None, value: bytes | None, offset: int = 0, timestamp: int = 5, child: str | None = None
) -> tuple[Any, ...]:
    return key, value, timestamp, [("h", b"1")], "in", 2, offset, None, child


def pairs(left: list[Left]) -> list[tuple[bytes | None, bytes | None]]:
    return [(each.key, each.value) for each in left]


def test_a_record_goes_through_all_steps_and_says_where_it_came_from() -> None:
    run = runner(
        lambda stream: (
            stream.filter(lambda key, value: value != "no")
            .map_values(str.upper)
            .map(lambda key, value: (f"{key}!", value))
            .to("out", OUT)
        )
    )
    (left,) = run.run([row(b"a", b"yes", 7), row(b"b", b"no", 8)])
    assert left == Left(0, b"a!", b"YES", 5, [("h", b"1")], "in", 2, 7, 0, "out", None)


def test_rows_of_one_record_are_counted() -> None:
    run = runner(lambda stream: stream.flat_map_values(str.split).to("out", OUT))
    assert [(each.value, each.seq) for each in run.run([row(b"a", b"x y z")])] == [
        (b"x", 0),
        (b"y", 1),
        (b"z", 2),
    ]


def test_a_split_takes_the_first_branch_that_fits_and_several_sinks_get_the_same_record() -> None:
    def write(stream: KStream) -> None:
        branches = (
            stream.split("split-").branch(lambda key, value: value == "1", "one").default_branch("rest")
        )
        branches["split-one"].to("ones", OUT)
        branches["split-rest"].map_values(lambda key, value: key + value).to("rest", OUT)
        stream.to("all", OUT)

    left = runner(write).run([row(b"a", b"1"), row(b"b", b"2")])
    assert [(each.target, each.value) for each in left] == [
        ("ones", b"1"),
        ("all", b"1"),
        ("rest", b"b2"),
        ("all", b"2"),
    ]


def test_a_function_that_fails_is_named_with_its_record() -> None:
    run = runner(
        lambda stream: stream.map_values(int, name="numbers").to("out", Produced.with_("string", "long"))
    )
    with pytest.raises(StreamsException, match="numbers failed on in-2@9: ValueError: invalid literal"):
        run.run([row(b"a", b"7", 8), row(b"a", b"seven", 9)])


def test_failures_can_be_skipped_one_branch_at_a_time() -> None:
    def write(stream: KStream) -> None:
        stream.map_values(int).to("out", Produced.with_("string", "long"))
        stream.to("copy", OUT)

    run = runner(write, config={"processing.exception.handler": "continue"})
    assert [each.target for each in run.run([row(b"a", b"seven")])] == ["copy"]


@pytest.mark.parametrize("handler", ["fail", "continue", "LogAndContinueExceptionHandler"])
def test_what_cannot_be_decoded_stops_the_program_or_is_skipped(handler: str) -> None:
    run = runner(
        lambda stream: stream.to("out"),
        Consumed.with_("string", "json"),
        {"deserialization.exception.handler": handler},
    )
    if handler == "fail":
        with pytest.raises(StreamsException, match="The record in-2@3 cannot be decoded"):
            run.run([row(b"a", b"{", 3)])
    else:
        assert pairs(run.run([row(b"a", b"{", 3), row(b"a", b"{}", 4)])) == [(b"a", b"{}")]


def test_dead_letters_have_their_bytes_and_kafkas_headers() -> None:
    run = runner(
        lambda stream: stream.to("out"),
        Consumed.with_("string", "json"),
        {"errors.dead.letter.queue.topic.name": "dead"},
    )
    (left,) = run.run([row(b"a", b"{", 3)])
    assert (left.exit, left.target, left.key, left.value) == (DEAD_LETTER, "dead", b"a", b"{")
    headers = dict(left.headers)
    assert headers["h"] == b"1"
    assert headers["__streams.errors.topic"] == b"in"
    assert headers["__streams.errors.partition"] == b"2"
    assert headers["__streams.errors.offset"] == b"3"
    assert b"not JSON" in (headers["__streams.errors.message"] or b"")


def test_a_record_for_one_child_goes_there_alone_and_through_topics_with_a_header() -> None:
    def write(stream: KStream) -> None:
        stream.map_values(str.upper, name="upper").to("out", OUT)
        stream.map_values(str.title, name="title").to("out", OUT)
        stream.repartition(Repartitioned(name="again"))

    run = runner(write)
    assert len(run.run([row(b"a", b"x")])) == 3
    assert pairs(run.run([row(b"a", b"x", child="upper")])) == [(b"a", b"X")]
    (through,) = run.run([row(b"a", b"x", child="again-repartition-filter")])
    assert (through.target, through.headers) == ("app-again-repartition", [("h", b"1")])
    program = replace(run.program, first_exits=(replace(run.program.steps[-1].exits[0], topic="cut"),))
    (_, cut) = Runner(program).run([row(b"a", b"x", child="upper")])
    assert (cut.target, cut.headers) == ("cut", [("h", b"1"), (CHILD_HEADER, b"upper")])


@pytest.mark.parametrize("handler", ["fail", "continue"])
def test_functions_that_choose_topics_partitions_and_times_may_fail(handler: str) -> None:
    def write(stream: KStream) -> None:
        stream.to(lambda key, value, record: 1 / 0, OUT)  # type: ignore[arg-type, return-value]

    def no_time(record: Any, highest: int) -> int:
        raise ValueError("no time")

    config = {"processing.exception.handler": handler}
    consumed = Consumed("string", "string", timestamp_extractor=no_time)
    runs = [runner(write, config=config), runner(lambda stream: stream.to("out", OUT), consumed, config)]
    for run, says in zip(
        runs,
        ("SINK.* failed on in-2@3: ZeroDivisionError", "extractor failed on in-2@3: ValueError"),
        strict=True,
    ):
        if handler == "fail":
            with pytest.raises(StreamsException, match=says):
                run.run([row(b"a", b"x", 3)])
        else:
            assert run.run([row(b"a", b"x", 3)]) == []


@pytest.mark.parametrize("join", ["join", "left_join"])
def test_records_without_a_key_go_through_a_topic_only_for_joins_that_take_them(join: str) -> None:
    def write(stream: KStream) -> None:
        chosen, joined = stream.select_key(lambda key, value: key), Joined.with_("string", "string", "string")
        getattr(chosen, join)(stream.to_table(), lambda one, two: one, joined=joined)

    found = runner(write).run([row(None, b"x"), row(b"a", b"y")])
    through = [each for each in found if each.target is not None and each.target.endswith("-repartition")]
    assert [each.key for each in through] == ([b"a"] if join == "join" else [None, b"a"])


def test_what_a_sink_cannot_encode_is_said() -> None:
    run = runner(lambda stream: stream.map_values(len).to("out", OUT))
    with pytest.raises(StreamsException, match="in-2@0: out: a int is not a string"):
        run.run([row(b"a", b"12")])


def test_timestamps_are_extracted_with_the_highest_so_far() -> None:
    def extract(record: Any, highest: int) -> int:
        return int(record.value) if record.value.isdigit() else highest

    run = runner(lambda stream: stream.to("out", OUT), Consumed("string", "string", extract))
    left = run.run([row(b"a", b"30"), row(b"a", b"20"), row(b"a", b"x")])
    assert [each.timestamp for each in left] == [30, 20, 30]
    other = (b"a", b"7", 5, [], "other", 2, 0, None, None)
    left = run.run([other, (b"a", b"x", *other[2:]), row(b"a", b"x")])
    assert [each.timestamp for each in left] == [7, 7, 30]


def test_a_record_with_a_negative_timestamp_is_left_out() -> None:
    def extract(record: Any, highest: int) -> int:
        return int(record.value)

    run = runner(lambda stream: stream.to("out", OUT), Consumed("string", "string", extract))
    left = run.run([row(b"a", b"-1"), row(b"b", b"0"), row(b"c", b"-7")])
    assert [(each.key, each.timestamp) for each in left] == [(b"b", 0)]


def test_the_topic_and_the_partition_can_be_chosen() -> None:
    run = runner(
        lambda stream: stream.to(
            lambda key, value, record: f"{record.topic}-{key}",
            Produced("string", "string"),
        )
    )
    assert run.run([row(b"a", b"1")])[0].target == "in-a"
    chosen = Produced("string", "string", lambda topic, key, value, partitions: int(value) % partitions)
    assert runner(lambda stream: stream.to("out", chosen)).run([row(b"a", b"7")])[0].target_partition == 3


def test_windowed_keys_go_where_their_keys_go() -> None:
    """As librdkafka and Java partition them: "a" goes to partition 0 of 4, whatever the window."""
    produced = Produced(Serdes.time_windowed("string", 10), "string")
    run = runner(
        lambda stream: stream.select_key(lambda key, value: Windowed(key, Window(int(value), 0))).to(
            "out", produced
        )
    )
    left = run.run([row(b"a", b"%d" % start) for start in range(50)])
    assert len({each.target_partition for each in left}) == 1
    assert left[3].key == b"a" + (3).to_bytes(8)


def test_tables_delete_what_does_not_pass() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", Consumed.with_("string", "string"))
    table.filter(lambda key, value: value == "1").map_values(lambda value: value * 2).to_stream().to(
        "out", OUT
    )
    settings = StreamsSettings.of({"application.id": "app", "bootstrap.servers": "nowhere:1"})
    planner = Planner(settings, {"in": 1, "out": 1})
    stage = next(each for each in stages(builder.build().nodes) if each.before)
    (leg,) = stage.before
    leaving = planner.leaf_exit(stage.leaves[0], 0)
    assert leaving is not None
    program = planner.program(leg, {stage.leaves[0]: leaving}, planner.origin_serdes(leg.origin))
    left = Runner(program).run([row(b"a", b"1"), row(b"a", b"2"), row(b"a", None), row(None, b"1")])
    assert pairs(left) == [(b"a", b"11"), (b"a", None), (b"a", None)]


def test_rows_that_have_a_target_pass() -> None:
    run = runner(lambda stream: stream.map_values(int).to("out", Produced.with_("string", "long")))
    (left,) = run.run([(b"k", b"not a number", 5, [], None, 1, None, "changelog", None)])
    assert (left.exit, left.target, left.target_partition, left.value) == (
        SIDE_OUTPUT,
        "changelog",
        1,
        b"not a number",
    )
