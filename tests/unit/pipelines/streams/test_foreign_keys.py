"""Joins of tables by foreign keys: the three tasks together give what Kafka Streams gave, in its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from moldau.client.serdes import SerializationError
from moldau.pipelines.streams.tasks.foreign_keys import Lookup, Resolve, Subscribe, SubscribeSerdes
from moldau.pipelines.streams.tasks.subscriptions import (
    Instruction,
    Response,
    Subscription,
    decode_response,
    decode_subscription,
    encode_response,
    encode_subscription,
    hash_of,
)
from moldau.pipelines.streams.tasks.table_joins import JoinSerdes
from moldau.pipelines.streams.tasks.task import Out, Row
from tests.harness.streams_inputs import inputs
from tests.harness.streams_results import Written, comparable, recorded
from tests.harness.streams_scenes import TEXT, other_key, together
from tests.unit.pipelines.streams.task_runs import TaskRun, texts


def joined(_key: Any, one: Any, two: Any) -> str:
    return together(one, two)


class Join:
    """The operators with their topics between them."""

    def __init__(self, *, left: bool) -> None:
        serdes = SubscribeSerdes(TEXT, TEXT, TEXT)
        self.subscribe = TaskRun(Subscribe(lambda key, value: other_key(value), serdes, left=left))
        self.lookup = TaskRun(Lookup())
        self.resolve = TaskRun(Resolve(joined, JoinSerdes(TEXT, TEXT, TEXT, TEXT), left=left))

    def batch(self, rows: Sequence[Row]) -> list[Out]:
        """Port 0 are the rows of the table, port 1 those of the other one."""
        own = [row for row in rows if row.port == 0]
        subscriptions = _rows(0, self.subscribe.rows(own))
        responses = _rows(1, self.lookup.rows([*subscriptions, *(row for row in rows if row.port == 1)]))
        return self.resolve.rows([*own, *responses])


def _rows(port: int, given: Sequence[Out]) -> list[Row]:
    return [
        Row(port, each.key, each.value, each.timestamp, topic="between", offset=place)
        for place, each in enumerate(given)
    ]


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("scene", ["foreign-join", "foreign-left-join"])
def test_the_table_is_that_of_kafka_streams(scene: str, size: int) -> None:
    join, given = Join(left=scene == "foreign-left-join"), []
    rows = [
        Row(
            0 if record.topic.endswith("left") else 1,
            (record.key or "").encode(),
            None if record.value is None else record.value.encode(),
            record.timestamp,
            topic=record.topic,
            offset=place,
        )
        for place, record in enumerate(inputs(scene))
    ]
    for begin in range(0, len(rows), size):
        given += join.batch(rows[begin : begin + size])
    written = [
        Written(
            f"{scene}-out",
            (out.key or b"").hex(),
            None if out.value is None else out.value.hex(),
            str(out.timestamp),
        )
        for out in given
    ]
    assert comparable(scene, written) == recorded()[scene]


def test_a_response_waits_for_the_row_that_it_answers() -> None:
    """The row's topic and that of responses are read by themselves, so the answer may be first."""
    run = TaskRun(Resolve(joined, JoinSerdes(TEXT, TEXT, TEXT, TEXT), left=False))
    answer = Response(hash_of(b"v1"), b"x")
    assert run.rows([Row(1, b"k", encode_response(answer), 7)]) == []
    assert run.rows([Row(0, b"k", b"v0", 4)]) == []
    assert texts(run.rows([Row(0, b"k", b"v1", 5)])) == [("k", "v1+x", 7)]
    assert run.maps["waiting"] == {}
    assert run.rows([Row(0, b"k", b"v2", 8), Row(1, b"k", encode_response(answer), 9)]) == []


def test_a_changed_row_tells_those_who_look_for_it_in_their_own_partitions() -> None:
    run = TaskRun(Lookup())
    only = Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE
    sent = [
        encode_subscription(Subscription(hash_of(key), only, key, place))
        for place, key in enumerate((b"one", b"two"))
    ]
    assert run.rows([Row(0, b"f", each, 5) for each in sent]) == []
    told = run.rows([Row(1, b"f", b"new", 9)])
    assert [(out.key, out.partition, out.timestamp) for out in told] == [(b"one", 0, 9), (b"two", 1, 9)]
    assert [decode_response(out.value or b"").value for out in told] == [b"new", b"new"]
    gone = Subscription(None, Instruction.DELETE_KEY_AND_PROPAGATE, b"one", 0)
    (answer,) = run.rows([Row(0, b"f", encode_subscription(gone), 10)])
    assert decode_response(answer.value or b"") == Response(None, None)
    assert [out.key for out in run.rows([Row(1, b"f", None, 11)])] == [b"two"]


@pytest.mark.parametrize(
    ("text", "java"),
    [
        ("", "9d2764a018e329428c3cf3b035938518"),
        ("v12", "79f527496c2c0e35623287033c2f4c5e"),
        ("12345678", "ddec8f9026074d665e35523e4a34fe8c"),
        ("123456789012345", "ae037d2b08960000351a1e49bc6671f5"),
        ("1234567890123456", "7eebd4b7e4424c983d2fca5635718acd"),
        ("a longer text than sixteen bytes, é", "920728fe827dd52acef2e7320012af6d"),
    ],
)
def test_hashes_are_those_of_kafka_streams(text: str, java: str) -> None:
    assert (hash_of(text.encode()) or b"").hex() == java


def test_subscriptions_and_responses_are_kafka_streams_bytes() -> None:
    value_hash = bytes(range(16))
    one = Subscription(value_hash, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE, b"key", 258)
    assert encode_subscription(one) == b"\x01\x02" + value_hash + b"key" + b"\0\0\1\2"
    none = Subscription(None, Instruction.DELETE_KEY_AND_PROPAGATE, b"key", 0)
    assert encode_subscription(none) == b"\x81\x01key\0\0\0\0"
    assert [decode_subscription(encode_subscription(each)) for each in (one, none)] == [one, none]
    assert encode_response(Response(value_hash, b"v")) == b"\0" + value_hash + b"v"
    assert decode_response(b"\x80") == Response(None, None)
    with pytest.raises(SerializationError, match="version 9"):
        decode_subscription(b"\x09\0")
