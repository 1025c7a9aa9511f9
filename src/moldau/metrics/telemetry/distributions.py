"""Histograms, exponential histograms and summaries of OTLP → numbers: `_count`, `_sum` and `_bucket`.

Buckets of a histogram are cumulative with the label `le`, as in Prometheus. Those of an exponential histogram
and the quantiles of a summary are not read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from moldau.metrics.telemetry.protobuf import FIXED64, LENGTH, MalformedMessage, double, message, sfixed64

HISTOGRAM: Final = 9
#: By the field of a metric: the field with the attributes of its points.
ATTRIBUTES: Final[Mapping[int, int]] = {HISTOGRAM: 9, 10: 1, 11: 7}
_COUNT, _SUM, _BUCKET_COUNTS, _BOUNDS = 4, 5, 6, 7
MAX_BUCKETS: Final = 200

Labels = dict[str, str]
Number = tuple[str, Labels, float]
Fields = Iterator[tuple[int, int, int | memoryview]]


def numbers_of(
    kind: int,
    fields: Fields,
    labels: Labels,
    with_attribute: Callable[[Labels, int | memoryview], None],
) -> Iterator[Number]:
    """Return suffix, labels and value of the numbers of a point."""
    found = dict(labels)
    count, total = 0, 0.0
    counts: list[int] = []
    bounds: list[float] = []
    for number, wire_type, value in fields:
        if number == ATTRIBUTES[kind]:
            with_attribute(found, value)
        elif number == _COUNT and wire_type == FIXED64:
            count = sfixed64(value)
        elif number == _SUM and wire_type == FIXED64:
            total = double(value)
        elif kind == HISTOGRAM and number == _BUCKET_COUNTS:
            counts += map(int, _packed("Q", wire_type, value))
        elif kind == HISTOGRAM and number == _BOUNDS:
            bounds += _packed("d", wire_type, value)
    yield "_count", found, count
    yield "_sum", found, total
    yield from _buckets(found, counts, bounds)


def _buckets(labels: Labels, counts: list[int], bounds: list[float]) -> Iterator[Number]:
    if not counts:
        return
    if len(counts) != len(bounds) + 1 or len(counts) > MAX_BUCKETS:
        raise MalformedMessage("a histogram has another number of buckets than bounds, or too many")
    cumulated = 0
    for count, bound in zip(counts, [*map(repr, bounds), "+Inf"], strict=True):
        cumulated += count
        yield "_bucket", {**labels, "le": bound}, cumulated


def _packed(form: str, wire_type: int, value: int | memoryview) -> list[float]:
    """Return repeated numbers of eight bytes: packed, or one of them."""
    data = message(value)
    if wire_type not in (FIXED64, LENGTH) or len(data) % 8 or len(data) > 8 * MAX_BUCKETS:
        raise MalformedMessage("repeated numbers have another size, or there are too many")
    return list(struct.unpack(f"<{len(data) // 8}{form}", data))
