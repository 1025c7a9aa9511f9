"""Pushed metrics: what is read of them, and that no bytes do harm."""

from __future__ import annotations

import random

import pytest

from moldau.metrics.telemetry.otlp import MAX_LABELS, MAX_POINTS, Point, decode
from moldau.metrics.telemetry.protobuf import MalformedMessage
from tests.harness.otlp import gauge, nested, payload, point, total, varint

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


def test_other_kinds_and_unknown_fields_are_skipped() -> None:
    histogram = nested(1, b"x") + nested(9, nested(1, b""))
    unknown = varint(15 << 3) + varint(9) + varint(14 << 3 | 5) + b"abcd"
    assert decode(payload(histogram, gauge("a", point(1)) + unknown)) == [Point("a", (), 1, False, False)]


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
    ],
    ids=["varint", "cut", "no name", "long name", "labels", "points", "not UTF-8", "number", "group"],
)
def test_malformed_content_is_refused(content: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode(content)


def test_reserved_names_are_replaced() -> None:
    [found] = decode(payload(gauge("1.x", point(1, {"__name__": "evil"}))))
    assert (found.name, found.labels) == ("_1_x", (("_name__", "evil"),))


def test_damaged_bytes_raise_nothing_else() -> None:
    rng = random.Random(3)
    whole = bytearray(payload(gauge(NAME, point(1.5, {"topic": "t"}), point(2)), total("b", point(7))))
    for _ in range(3000):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            decode(bytes(damaged[: rng.randrange(len(damaged) + 1)]))
        except MalformedMessage:
            continue
