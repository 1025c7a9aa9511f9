"""The inputs of a query that may have late records."""

from __future__ import annotations

from tests.unit.pipelines.sql.example_catalog import compiled


def test_windows_and_stream_stream_joins_may_have_late_records() -> None:
    assert compiled("SELECT id, total FROM orders").late == ()
    (windowed,) = compiled(
        "SELECT customer, COUNT(*) AS n FROM orders WINDOW TUMBLING (SIZE 1 MINUTE) WHERE total > 1 "
        "GROUP BY customer"
    ).late
    assert windowed.window is not None
    assert windowed.sql.endswith("WHERE `orders`.`total` > 1")
    left, right = compiled(
        "SELECT o.id, o.customer FROM orders o JOIN payments p WITHIN 1 HOUR ON o.id = p.id WHERE amount > 1"
    ).late
    assert (left.views, right.views, left.window) == (("__source_0",), ("__source_1",), None)
