"""Stream-stream joins, session windows, split queries, INSERT INTO … SELECT, and rejected statements."""

from __future__ import annotations

import uuid

import pytest

from moldau.pipelines.sql.errors import SqlError
from tests.pipelines.sql.conftest import NewEngine, rows, run
from tests.pipelines.sql.test_page import holds


def test_stream_stream_joins_sessions_and_rejected_statements(new_engine: NewEngine) -> None:
    unique = uuid.uuid4().hex[:8]
    engine = new_engine()
    run(
        engine,
        f"""
        CREATE STREAM orders (id INT KEY, customer VARCHAR, at BIGINT)
          WITH (topic='o_{unique}', partitions=2, timestamp='at');
        CREATE STREAM payments (id INT KEY, order_id INT, amount DOUBLE, at BIGINT)
          WITH (topic='p_{unique}', partitions=1, timestamp='at', format='DELIMITED');
        INSERT INTO orders VALUES (1, 'ann', 1000), (2, 'bob', 2000), (3, 'ann', 3000);
        INSERT INTO payments VALUES (100, 1, 10, 1500), (101, 2, 5, 9000000), (102, 3, 1, 3100);
        CREATE STREAM paid WITH (topic='paid_{unique}') AS SELECT o.id, p.amount, o.customer
          FROM orders o JOIN payments p WITHIN 1 HOUR ON o.id = p.order_id;
        CREATE TABLE sums WITH (topic='sums_{unique}') AS SELECT o.customer, SUM(p.amount) AS paid
          FROM orders o JOIN payments p WITHIN 1 HOUR ON o.id = p.order_id GROUP BY o.customer;
        INSERT INTO paid SELECT id, CAST(0 AS DOUBLE) AS amount, customer FROM orders;
        """,
    )
    holds(engine, "SELECT id, amount FROM paid WHERE amount > 0", [[1, 10.0], [3, 1.0]])
    holds(engine, "SELECT COUNT(*) FROM paid WHERE amount = 0", [[3]])
    holds(engine, "SELECT * FROM sums", [["ann", 11.0]])

    sessions = rows(
        engine,
        "SELECT customer, COUNT(*) AS n, WINDOWSTART, WINDOWEND FROM orders WINDOW SESSION (2 SECONDS) "
        "GROUP BY customer",
    )
    assert sorted(sessions) == [["ann", 2, 1000, 3000], ["bob", 1, 2000, 2000]]

    for text, words in (
        ("SELECT ucasee(customer) FROM orders;", "Did you mean UCASE?"),
        ("DROP STREAM orders;", "is used by"),
        ("DROP TABLE orders;", "DROP STREAM orders"),
        ("CREATE STREAM paid AS SELECT id, customer FROM orders;", "already"),
        (
            "CREATE STREAM x AS SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer;",
            "CREATE TABLE x",
        ),
        ("CREATE TABLE x AS SELECT id, customer FROM orders;", "CREATE STREAM x"),
        ("CREATE STREAM x (a INT) WITH (topic='nowhere');", "partitions=1"),
        ("CREATE STREAM x (a INT) WITH (topc='nowhere');", "Did you mean topic?"),
        ("CREATE STREAM x (a INT) WITH (topic='t', format='XML', partitions=1);", "Unknown format XML"),
        (
            "CREATE STREAM x (a INT, b INT) WITH (topic='t', format='KAFKA', partitions=1);",
            "holds one column",
        ),
        ("INSERT INTO paid SELECT id, customer AS amount, customer FROM orders;", "CAST(… AS DOUBLE)"),
        ("INSERT INTO orders (id, customer) VALUES ('x', 'y');", "Column id has type INTEGER"),
        ("PRINT nothing;", "Topic nothing does not exist"),
        ("TERMINATE CSAS_NOTHING_9;", "Unknown query CSAS_NOTHING_9"),
        ("SET 'auto.offset.rest'='earliest';", "Did you mean auto.offset.reset?"),
    ):
        with pytest.raises(Exception) as caught:
            run(engine, text)
        assert words in str(caught.value), text
    with pytest.raises(SqlError, match="CREATE STREAM j"):
        run(
            engine,
            "SELECT o.customer, COUNT(*) FROM orders o JOIN payments p WITHIN 1 HOUR ON o.id = p.order_id "
            "GROUP BY o.customer EMIT CHANGES;",
        )
