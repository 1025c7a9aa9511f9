"""OTLP metrics (`opentelemetry.proto.metrics.v1.MetricsData`) → points: what clients push.

Gauges and sums are read, which is what Java's clients and librdkafka send, and the numbers of histograms and
summaries (`distributions`), which other clients may. The number of points, of labels and the length of names
are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from moldau.metrics.telemetry.distributions import ATTRIBUTES, numbers_of
from moldau.metrics.telemetry.protobuf import (
    FIXED64,
    MalformedMessage,
    double,
    fields,
    int64,
    message,
    nested,
    sfixed64,
    text,
)

MAX_POINTS: Final = 10_000
MAX_LABELS: Final = 32
MAX_NAME: Final = 256
MAX_LABEL_VALUE: Final = 256
_DELTA: Final = 1
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_]")
#: Attributes of the resource that become labels, as those of its points do.
_RESOURCE_LABELS: Final = frozenset(
    {"client_rack", "group_id", "group_instance_id", "group_member_id", "transactional_id", "application_id"}
)


class Point(NamedTuple):
    """One value. Labels are sorted; `name` is that of Prometheus."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    #: Whether the value only grows, and whether it is the growth since the last push.
    monotonic: bool
    delta: bool


def decode(payload: bytes) -> list[Point]:
    """Return the points of a push; `MalformedMessage` if the payload cannot be read, or has too many."""
    points: list[Point] = []
    for number, _, value in fields(memoryview(payload)):
        if number == 1:
            for point in _resource_metrics(message(value)):
                points.append(point)
                if len(points) > MAX_POINTS:
                    raise MalformedMessage(f"more than {MAX_POINTS} points")
    return points


def with_resource_attributes(payload: bytes, attributes: Mapping[str, str]) -> bytes:
    """Return a payload with these attributes added to all its resources.

    A reader merges fields of a message that occur twice, so a second `resource` adds to the first.
    """
    added = b"".join(
        nested(1, nested(1, name.encode()) + nested(2, nested(1, value.encode())))
        for name, value in attributes.items()
    )
    resource = nested(1, added)
    return b"".join(
        nested(1, bytes(message(value)) + resource)
        for number, _, value in fields(memoryview(payload))
        if number == 1
    )


def _resource_metrics(data: memoryview) -> Iterator[Point]:
    labels: dict[str, str] = {}
    scopes: list[memoryview] = []
    for number, _, value in fields(data):
        if number == 1:
            found = dict(_attribute(message(each)) for field, _, each in fields(message(value)) if field == 1)
            labels |= {name: text for name, text in found.items() if name in _RESOURCE_LABELS}
        elif number == 2:
            scopes.append(message(value))
    for scope in scopes:
        for number, _, value in fields(scope):
            if number == 2:
                yield from _metric(message(value), labels)


def _metric(data: memoryview, labels: dict[str, str]) -> Iterator[Point]:
    name = ""
    kind, content = 0, memoryview(b"")
    for number, _, value in fields(data):
        if number == 1:
            name = prometheus_name(text(value))
        elif number in (5, 7) or number in ATTRIBUTES:
            kind, content = number, message(value)
    if not kind:
        return
    monotonic = delta = False
    for number, _, value in fields(content):
        if number == 2:
            delta = value == _DELTA
        elif number == 3:
            monotonic = bool(value)
    for number, _, value in fields(content):
        if number == 1 and kind in ATTRIBUTES:
            for suffix, named, amount in numbers_of(kind, fields(message(value)), labels, _add_attribute):
                yield Point(f"{name}{suffix}", tuple(sorted(named.items())), amount, False, delta)
        elif number == 1:
            found = _number_point(message(value), labels)
            if found is not None:
                yield Point(name, found[0], found[1], monotonic, delta)


def _number_point(
    data: memoryview, labels: dict[str, str]
) -> tuple[tuple[tuple[str, str], ...], float] | None:
    amount: float | None = None
    found = dict(labels)
    for number, wire_type, value in fields(data):
        if number == 4 and wire_type == FIXED64:
            amount = double(value)
        elif number == 6 and wire_type == FIXED64:
            amount = sfixed64(value)
        elif number == 7:
            _add_attribute(found, value)
    return None if amount is None else (tuple(sorted(found.items())), amount)


def _add_attribute(found: dict[str, str], value: int | memoryview) -> None:
    name, content = _attribute(message(value))
    found[name] = content
    if len(found) > MAX_LABELS:
        raise MalformedMessage(f"more than {MAX_LABELS} attributes")


def _attribute(data: memoryview) -> tuple[str, str]:
    name = content = ""
    for number, _, value in fields(data):
        if number == 1:
            name = prometheus_name(text(value))
        elif number == 2:
            content = _any_value(message(value))
    return name, content[:MAX_LABEL_VALUE]


def _any_value(data: memoryview) -> str:
    for number, _, value in fields(data):
        if number == 1:
            return text(value)
        if number == 2:
            return "true" if value else "false"
        if number == 3:
            return str(int64(value))
        if number == 4:
            return repr(double(value))
    return ""


def prometheus_name(name: str) -> str:
    """Return a name with the characters that Prometheus allows: `org.apache.kafka.x` → `org_apache_kafka_x`.

    Names that begin with two underscores are reserved.
    """
    if not name or len(name) > MAX_NAME:
        raise MalformedMessage("a name is empty or too long")
    valid = _NOT_IN_NAMES.sub("_", name)
    return f"_{valid.lstrip('_')}" if valid[0] == "_" or valid[0].isdigit() else valid
