"""Errors of queries name the place and the remedy."""

from __future__ import annotations

import pytest

from moldau.pipelines.sql.errors import SqlError
from tests.unit.pipelines.sql.example_catalog import compiled


@pytest.mark.parametrize(
    ("query", "column", "words"),
    [
        ("SELECT idd FROM orders", 8, "Did you mean id?"),
        ("SELECT id FROM orderz", 16, "Did you mean orders?"),
        (
            "SELECT id FROM orders WHERE total > 'abc'",
            29,
            "total of type DOUBLE cannot be compared",
        ),
        ("SELECT id FROM orders WHERE total > '5'", 29, "Write the number without quotes: 5"),
        ("SELECT id FROM orders WHERE customer = 5", 29, "Write text in quotes: '5'"),
        ("SELECT id + 'x' AS n FROM orders", 8, "be combined with 'x'"),
        ("SELECT customer, COUNT(*) AS n FROM orders", 1, "An aggregate needs GROUP BY"),
        ("SELECT id, COUNT(*) AS n FROM orders GROUP BY customer", 8, "LATEST_BY_OFFSET(id)"),
        ("SELECT o.id FROM orders o JOIN payments p ON o.id = p.id", 27, "WITHIN 1 HOUR"),
        (
            "SELECT o.id FROM orders o JOIN payments p WITHIN 1 HOUR ON o.id > p.id",
            27,
            "ON o.column = p.column",
        ),
        ("SELECT c.name FROM customers c JOIN orders o ON c.name = o.customer", 32, "Put the stream first"),
        (
            "SELECT o.id FROM orders o FULL JOIN customers c ON o.customer = c.name",
            27,
            "use JOIN or LEFT JOIN",
        ),
        ("SELECT customer FROM orders", 1, "SELECT orders.id, …"),
        (
            "SELECT o.id FROM orders o FULL JOIN payments p WITHIN 1 HOUR ON o.id = p.id",
            1,
            "must include the key of the result: ROWKEY",
        ),
        ("SELECT WINDOWSTART, id FROM orders", 8, "WINDOWSTART needs a WINDOW clause"),
    ],
)
def test_rejected_query_names_its_place_and_the_remedy(query: str, column: int, words: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(query)
    message = str(caught.value)
    assert message.startswith(f"line 1, column {column}: "), message
    assert words in message
