"""Comparison of replicas, batch by batch."""

from __future__ import annotations

import pytest

from moldau.base.ids import TopicPartition
from moldau.cli.kafka.replica_verification.comparison import Divergence, MaxLag, ReplicaComparison
from moldau.client.admin.replica_fetch import ReplicaData
from moldau.protocol.records import Record, build_batch

ORDERS = TopicPartition("orders", 0)


def comparison(offset: int = 0) -> ReplicaComparison:
    return ReplicaComparison({ORDERS: [1, 2]}, {ORDERS: offset})


def data(*batches: bytes, high_watermark: int) -> ReplicaData:
    return ReplicaData(high_watermark, memoryview(b"".join(batches)))


def batch(base_offset: int, *values: bytes) -> bytes:
    records = [Record(offset, 0, None, value) for offset, value in enumerate(values, base_offset)]
    return bytes(build_batch(records, base_offset=base_offset, partition_leader_epoch=0))


def test_equal_replicas_are_compared_up_to_the_high_watermark() -> None:
    both = [batch(0, b"a", b"b"), batch(2, b"c"), batch(3, b"d")]
    checked = comparison()
    fetched = {ORDERS: {1: data(*both, high_watermark=4), 2: data(*both, high_watermark=3)}}
    assert checked.compare(fetched) == ([], MaxLag(1, ORDERS, 3))
    assert checked.offsets == {ORDERS: 3}


def test_shorter_replica_delays_its_partition() -> None:
    checked = comparison()
    fetched = {
        ORDERS: {
            1: data(batch(0, b"a"), batch(1, b"b"), high_watermark=2),
            2: data(batch(0, b"a"), high_watermark=1),
        }
    }
    assert checked.compare(fetched) == ([], MaxLag(1, ORDERS, 1))


def test_missing_replica_delays_its_partition() -> None:
    checked = comparison()
    found = checked.compare({ORDERS: {1: data(batch(0, b"a"), high_watermark=1)}})
    assert found == ([], MaxLag(1, ORDERS, 0))
    assert checked.compare({}) == ([], MaxLag(-1, None, -1))


def test_different_crcs_are_reported() -> None:
    checked = comparison()
    fetched = {
        ORDERS: {
            1: data(batch(0, b"a"), high_watermark=1),
            2: data(batch(0, b"b"), high_watermark=1),
        }
    }
    (message,), worst = checked.compare(fetched)
    assert message.startswith("partition orders-0 has unmatched checksum at offset 0; replica 1's checksum ")
    assert worst.lag == 0


def test_different_last_offsets_raise_divergence() -> None:
    fetched = {
        ORDERS: {
            1: data(batch(0, b"a", b"b"), high_watermark=9),
            2: data(batch(0, b"a"), high_watermark=9),
        }
    }
    with pytest.raises(Divergence, match="replica 1's offset 1 doesn't match replica 2's offset 0"):
        comparison().compare(fetched)
