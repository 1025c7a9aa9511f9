"""The plan of a reset."""

from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.console.pages.resets import plan
from moldau.console.web.forms import Form

ONE, TWO, GONE = TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("orders", 2)
COMMITTED = {ONE: 5, TWO: None, GONE: 7}
ERROR = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)


@pytest.mark.parametrize(
    ("target", "fields", "expected"),
    [
        ("beginning", {}, [2, 0]),
        ("end", {}, [10, 4]),
        ("offset", {"offset": "3"}, [3, 3]),
        ("offset", {"offset": "99"}, [10, 4]),
        ("time", {}, [6, 4]),
        ("shift", {"shift": "-1"}, [4, 0]),
        ("shift", {"shift": "100"}, [10, 4]),
    ],
)
def test_a_partition_that_cannot_be_read_does_not_stop_the_others(
    target: str, fields: dict[str, str], expected: list[int]
) -> None:
    times = {ONE: 6, TWO: -1, GONE: ERROR} if target == "time" else {}
    rows = plan(
        target, Form(fields), COMMITTED, {ONE: 2, TWO: 0, GONE: ERROR}, {ONE: 10, TWO: 4, GONE: ERROR}, times
    )
    assert [each["new"] for each in rows] == [*expected, None]
    assert [each["error"] for each in rows] == [None, None, "LEADER_NOT_AVAILABLE"]
    assert [each["before"] for each in rows] == [5, None, 7]
