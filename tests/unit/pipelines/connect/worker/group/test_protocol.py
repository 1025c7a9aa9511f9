"""The group protocol's bytes."""

from __future__ import annotations

import pytest

from moldau.pipelines.connect.storage.types import TaskId
from moldau.pipelines.connect.worker.group.protocol import (
    Assignment,
    InvalidState,
    MemberState,
    Work,
    decode_assignment,
    decode_state,
    encode_assignment,
    encode_state,
)

WORK = Work(frozenset({"a", "b"}), frozenset({TaskId("a", 0), TaskId("a", 1), TaskId("ü", 0)}))


def test_the_bytes_of_an_assignment_are_those_of_kafka_connect() -> None:
    work = Work(frozenset({"c"}), frozenset({TaskId("c", 1)}))
    found = encode_assignment(Assignment(0, "m", "http://x/", 5, work, Work(), 7), 2)
    assert found == bytes.fromhex(
        "0002 0000 0001 6d 0009 687474703a2f2f782f 0000000000000005"
        "00000001 0001 63 00000002 ffffffff 00000001"
        "00000000 00000007"
    )


def test_messages_survive_a_round_trip() -> None:
    assignment = Assignment(1, "member", "http://host:8083/", 12, WORK, Work(frozenset({"z"})), 300)
    assert decode_assignment(encode_assignment(assignment, 1)) == assignment
    state = MemberState("http://host:8083/", 12, WORK)
    assert decode_state(encode_state(state, "member", "http://host:8083/", 2)) == state
    empty = MemberState("http://host:8083/", -1)
    assert decode_state(encode_state(empty, None, None, 2)) == empty


@pytest.mark.parametrize("length", [0, 1, 5, 20])
def test_a_damaged_message_is_refused(length: int) -> None:
    data = encode_assignment(Assignment(0, "m", "http://x/", 5, WORK), 2)
    with pytest.raises(InvalidState):
        decode_assignment(data[:length])
    with pytest.raises(InvalidState):
        decode_assignment(data[:2] + b"\x7f\xff" * 8)
