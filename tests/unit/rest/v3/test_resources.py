"""Times as Java's `Instant` writes them."""

from __future__ import annotations

import pytest

from moldau.rest.v3.resources import instant


@pytest.mark.parametrize(
    ("timestamp_ms", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1612552482123, "2021-02-05T19:14:42.123Z"),
        (1612552482100, "2021-02-05T19:14:42.100Z"),
        (253402300799999, "9999-12-31T23:59:59.999Z"),
        (253402300800000, "+10000-01-01T00:00:00Z"),
        ((1 << 63) - 1, "+292278994-08-17T07:12:55.807Z"),
    ],
)
def test_instant(timestamp_ms: int, text: str) -> None:
    assert instant(timestamp_ms) == text
