"""What is said about statements that cannot be run: where, and what to do."""

from __future__ import annotations

import pytest

from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.parser import parse
from moldau.pipelines.sql.properties import Settings
from tests.unit.pipelines.sql.worlds import compiled


def told(text: str) -> str:
    with pytest.raises(SqlError) as caught:
        for _ in parse(text):
            pass
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("ALTER STREAM a ADD COLUMN b INT;", "line 1, column 1", "CREATE OR REPLACE"),
        ("SHOW STREAMS;\nCREATE SOURCE CONNECTOR x WITH (a='b');", "line 2, column 1", "moldau pipeline run"),
        ("LIST CONNECTORS;", "line 1, column 1", "moldau pipeline list"),
        ("CREATE TYPE t AS STRUCT<a INT>;", "line 1, column 1", "STRUCT<…>"),
        ("DEFINE a = 'b';", "line 1, column 1", "envsubst"),
        ("SPOOL 'file';", "line 1, column 1", "--output csv"),
        ("ASSERT TOPIC t;", "line 1, column 1", "SHOW TOPICS"),
        ("CREATE STREAM from (a INT) WITH (topic='t');", "line 1, column 15", "`from`"),
        ("CREATE STREAM s (a INT,\n  group VARCHAR) WITH (topic='t');", "line 2, column 3", "`group`"),
        ("SELECT a FROM where;", "line 1, column 15", "`where`"),
        ("SELECT 'abc FROM s;", "line 1, column 8", "not closed"),
        ("SELCT a FROM s;", "line 1, column 1", "Did you mean SELECT?"),
        ("SELECT a s;", "line 1, column 11", "Expected FROM"),
        ("INSERT INTO s (a, b) VALUES (1);", "line 1, column 29", "2 columns, but 1 values"),
        ("PAUSE;", "line 1, column 6", "or ALL"),
        ("CREATE STREAM s (a INTT) WITH (topic='t');", "line 1, column 20", "Did you mean INT?"),
        ("CREATE TABLE t (a INT KEY) WITH (topic='t');", "line 1, column 23", "PRIMARY KEY"),
        ("SELECT COUNT(* FROM s;", "line 1, column 16", "Expecting )"),
    ],
)
def test_words_that_are_wrong(text: str, place: str, words: str) -> None:
    message = told(text)
    assert message.startswith(place), message
    assert words in message
    assert "^" in message


@pytest.mark.parametrize(
    ("query", "column", "words"),
    [
        ("SELECT idd FROM orders", 8, "Did you mean id?"),
        ("SELECT id FROM orderz", 16, "Did you mean orders?"),
        ("SELECT id FROM orders WHERE total > 'abc'", 29, "total is DOUBLE"),
        ("SELECT id FROM orders WHERE total > '5'", 29, "Without quotes it is a number: 5"),
        ("SELECT id FROM orders WHERE customer = 5", 29, "Text stands in quotes: '5'"),
        ("SELECT id + 'x' AS n FROM orders", 8, "be calculated with 'x'"),
        ("SELECT customer, COUNT(*) AS n FROM orders", 1, "An aggregate needs GROUP BY"),
        ("SELECT id, COUNT(*) AS n FROM orders GROUP BY customer", 8, "LATEST_BY_OFFSET(id)"),
        ("SELECT o.id FROM orders o JOIN payments p ON o.id = p.id", 27, "WITHIN 1 HOUR"),
        (
            "SELECT o.id FROM orders o JOIN payments p WITHIN 1 HOUR ON o.id > p.id",
            27,
            "ON o.column = p.column",
        ),
        ("SELECT c.name FROM customers c JOIN orders o ON c.name = o.customer", 32, "Put the stream first"),
        ("SELECT o.id FROM orders o FULL JOIN customers c ON o.customer = c.name", 27, "JOIN or LEFT JOIN"),
        ("SELECT customer FROM orders", 1, "SELECT orders.id, …"),
        (
            "SELECT o.id FROM orders o FULL JOIN payments p WITHIN 1 HOUR ON o.id = p.id",
            1,
            "The key of the result is not selected: ROWKEY",
        ),
        ("SELECT WINDOWSTART, id FROM orders", 8, "only there with a WINDOW"),
    ],
)
def test_queries_that_are_wrong(query: str, column: int, words: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(query)
    message = str(caught.value)
    assert message.startswith(f"line 1, column {column}: "), message
    assert words in message


def test_dates_in_quotes_and_the_key_by_its_old_name() -> None:
    assert "unix_millis(to_timestamp('2020-01-01'))" in compiled(
        "SELECT ROWKEY, customer FROM orders WHERE ROWTIME >= '2020-01-01'"
    ).sql.replace("UNIX_MILLIS", "unix_millis").replace("TO_TIMESTAMP", "to_timestamp")
    plan = compiled("SELECT ROWKEY, customer FROM orders")
    assert plan.key_columns == ["ROWKEY"]
    joined = compiled(
        "SELECT ROWKEY, o.customer FROM orders o FULL JOIN payments p WITHIN 1 HOUR ON o.id = p.order_id"
    )
    assert "coalesce(`o`.`id`, `p`.`order_id`) AS `ROWKEY`" in joined.sql
    assert joined.key_columns == ["ROWKEY"]
    with pytest.raises(SqlError, match="a key of one column"):
        compiled("SELECT ROWKEY FROM loose")


def test_what_may_come_too_late() -> None:
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


def test_settings_as_ksqldb_names_them() -> None:
    settings = Settings()
    assert settings.set("ksql.streams.auto.offset.reset", "earliest") == "auto.offset.reset is earliest."
    assert settings["auto.offset.reset"] == "earliest"
    assert settings.set("auto.offset.reset", None) == "auto.offset.reset is latest, as by default."
    settings.set("processing.guarantee", "at_least_once")
    assert settings["exactly.once"] == "false"
    settings.set("processing.guarantee", "exactly_once_v2")
    assert settings["exactly.once"] == "true"
    assert "decides nothing here" in settings.set("ksql.query.pull.table.scan.enabled", "true")
    with pytest.raises(SqlError, match="Did you mean trigger"):
        settings.set("triger", "1 second")
    with pytest.raises(SqlError, match="'earliest' or 'latest'"):
        settings.set("auto.offset.reset", "first")
