"""The JSON of Burrow's API, from verdicts."""

from __future__ import annotations

from moldau.lag.serving.burrow import topic_offsets


def test_the_offsets_of_a_topic_are_listed_by_partition() -> None:
    assert topic_offsets({2: 30, 0: 10}, 4) == [10, -1, 30, -1]
    assert topic_offsets({0: 10, 1: 20}, 0) == [10, 20]
    assert topic_offsets({}, 0) == []
