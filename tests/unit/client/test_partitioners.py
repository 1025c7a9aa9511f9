from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest

from moldau.base.errors import KafkaError
from moldau.client.partitioners import (
    DefaultPartitioner,
    RoundRobinPartitioner,
    StickyPartitioner,
    choose_partitioner,
    murmur2,
    partition_for_key,
)

#: What Java's Utils.murmur2 gives.
JAVA = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
    (b"", 275646681),
]


@pytest.mark.parametrize(("data", "expected"), JAVA)
def test_murmur2_equals_java(data: bytes, expected: int) -> None:
    assert murmur2(data) == expected
    assert partition_for_key(data, 7) == (expected & 0x7FFFFFFF) % 7


def choose(partitioner: object, key: bytes | None, value: bytes = b"", partitions: int = 4) -> int:
    chosen: int = partitioner.partition("t", None, key, None, value, partitions)  # type: ignore[attr-defined]
    return chosen


def test_default_partitioner_hashes_keys_and_leaves_others_to_librdkafka() -> None:
    assert choose(DefaultPartitioner(), b"abc") == partition_for_key(b"abc", 4)
    assert choose(DefaultPartitioner(), None) == -1


def test_round_robin_ignores_the_key() -> None:
    partitioner = RoundRobinPartitioner()
    assert [choose(partitioner, b"same") for _ in range(6)] == [0, 1, 2, 3, 0, 1]


def test_sticky_changes_the_partition_after_a_batch() -> None:
    partitioner = StickyPartitioner(batch_size=100, randomness=random.Random(1))
    chosen = [choose(partitioner, b"k", b"v" * 24) for _ in range(400)]
    runs = [chosen[start : start + 4] for start in range(0, 400, 4)]
    assert all(len(set(run)) == 1 for run in runs)
    assert all(before[0] != after[0] for before, after in pairwise(runs))
    assert set(Counter(chosen)) == {0, 1, 2, 3}


def test_partitioner_is_chosen_by_name_class_or_object() -> None:
    assert choose_partitioner(None) is None
    assert choose_partitioner("org.apache.kafka.clients.producer.internals.DefaultPartitioner") is None
    java = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
    assert isinstance(choose_partitioner(java), RoundRobinPartitioner)
    assert isinstance(choose_partitioner(StickyPartitioner), StickyPartitioner)
    with pytest.raises(KafkaError, match="Unknown partitioner 'x'"):
        choose_partitioner("x")
