"""Pushed metrics: what is read of them, and that no bytes do harm."""

from __future__ import annotations

import random

import pytest

from moldau.metrics.telemetry.otlp import MAX_LABELS, MAX_POINTS, Point, decode
from moldau.metrics.telemetry.protobuf import MalformedMessage
from tests.harness.otlp import gauge, histogram, nested, payload, point, summary, total, varint

NAME = "org.apache.kafka.producer.record.queue.time.avg"


def test_gauges_and_sums_are_read() -> None:
    found = decode(
        payload(
            gauge(NAME, point(1.5, {"topic": "t", "node.id": 3})),
            total("org.apache.kafka.producer.connection.creation.total", point(7)),
            total("messages", point(2.0), delta=False),
            resource={"group_id": "g", "service.name": "ignored"},
        )
    )
    assert found == [
        Point(
            "org_apache_kafka_producer_record_queue_time_avg",
            (("group_id", "g"), ("node_id", "3"), ("topic", "t")),
            1.5,
            False,
            False,
        ),
        Point("org_apache_kafka_producer_connection_creation_total", (("group_id", "g"),), 7, True, True),
        Point("messages", (("group_id", "g"),), 2.0, True, False),
    ]


def test_unknown_fields_are_skipped() -> None:
    unknown = varint(15 << 3) + varint(9) + varint(14 << 3 | 5) + b"abcd"
    assert decode(payload(gauge("a", point(1)) + unknown)) == [Point("a", (), 1, False, False)]


def test_a_histogram_has_count_sum_and_cumulative_buckets() -> None:
    found = decode(payload(histogram("h", [1, 2, 4], [0.5, 10.0], 33.5, {"topic": "t"}, delta=True)))
    topic = ("topic", "t")
    assert found == [
        Point("h_count", (topic,), 7, False, True),
        Point("h_sum", (topic,), 33.5, False, True),
        Point("h_bucket", (("le", "0.5"), topic), 1, False, True),
        Point("h_bucket", (("le", "10.0"), topic), 3, False, True),
        Point("h_bucket", (("le", "+Inf"), topic), 7, False, True),
    ]


def test_a_summary_has_count_and_sum() -> None:
    found = decode(payload(summary("s", 3, 1.5)))
    assert found == [Point("s_count", (), 3, False, False), Point("s_sum", (), 1.5, False, False)]


def test_nothing_is_nothing() -> None:
    assert decode(b"") == []


@pytest.mark.parametrize(
    "content",
    [
        b"\xff" * 20,
        nested(1, b"\x0a\xff"),
        payload(gauge("", point(1))),
        payload(gauge("x" * 300, point(1))),
        payload(gauge("x", point(1, {str(number): "" for number in range(MAX_LABELS + 1)}))),
        payload(gauge("x", *[point(1)] * (MAX_POINTS + 1))),
        payload(nested(1, b"\xff\xfe") + nested(5, nested(1, point(1)))),
        varint(1 << 3) + varint(1),
        b"\x0b",
        payload(histogram("h", [1, 2], [], 1.0)),
        payload(histogram("h", [1] * 500, [1.0] * 499, 1.0)),
    ],
    ids=[
        *("varint", "cut", "no name", "long name", "labels", "points", "not UTF-8", "number", "group"),
        *("bounds", "buckets"),
    ],
)
def test_malformed_content_is_refused(content: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode(content)


def test_reserved_names_are_replaced() -> None:
    [found] = decode(payload(gauge("1.x", point(1, {"__name__": "evil"}))))
    assert (found.name, found.labels) == ("_1_x", (("_name__", "evil"),))


def test_damaged_bytes_raise_nothing_else() -> None:
    rng = random.Random(3)
    whole = bytearray(
        payload(
            gauge(NAME, point(1.5, {"topic": "t"}), point(2)),
            total("b", point(7)),
            histogram("h", [1, 2], [0.5], 1.0),
            summary("s", 1, 2.0),
        )
    )
    for _ in range(3000):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            decode(bytes(damaged[: rng.randrange(len(damaged) + 1)]))
        except MalformedMessage:
            continue
