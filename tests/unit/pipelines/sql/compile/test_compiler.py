"""SELECT is compiled to Spark SQL: columns, keys, windows, joins, and rejected queries."""

from __future__ import annotations

import pytest

from moldau.pipelines.sql.compile.compiler import DEFAULT_GRACE_MS
from moldau.pipelines.sql.compile.plan import Purpose
from moldau.pipelines.sql.compile.split_query import split_query
from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.parser import parse
from moldau.pipelines.sql.parse.statements import CreateAs
from tests.unit.pipelines.sql.example_catalog import catalog, compiled


def test_columns_struct_fields_arrays_and_functions() -> None:
    plan = compiled(
        "SELECT id, UCASE(customer) AS c, addr->geo->lat, items[1], ROWTIME FROM orders WHERE total > 1"
    )
    assert plan.sql == (
        "SELECT `orders`.`id` AS `id`, UPPER(`orders`.`customer`) AS `c`, "
        "`orders`.`addr`.`geo`.`lat` AS `lat`, "
        "TRY_ELEMENT_AT(`orders`.`items`, 1) AS `KSQL_COL_3`, `orders`.`ROWTIME` AS `ROWTIME`, "
        "`orders`.`__time` AS __time\nFROM `__source_0` AS `orders`\nWHERE `orders`.`total` > 1"
    )
    assert (plan.kind, plan.running, plan.key_columns) == ("STREAM", "append", ["id"])


def test_names_are_case_insensitive() -> None:
    assert compiled("SELECT ID, O.CUSTOMER FROM Orders o").sql.startswith(
        "SELECT `o`.`id` AS `ID`, `o`.`customer` AS `CUSTOMER`"
    )


def test_partition_by_changes_the_key() -> None:
    plan = compiled("SELECT * FROM orders PARTITION BY customer")
    assert plan.key_columns == ["customer"]
    plan = compiled("SELECT LEN(customer) AS l, id FROM orders PARTITION BY LEN(customer)")
    assert plan.key_columns == ["l"]
    assert compiled("SELECT line FROM loose").key_columns == []


@pytest.mark.parametrize(
    ("window", "sql", "grace", "running"),
    [
        (
            "TUMBLING (SIZE 1 MINUTE)",
            "window(`orders`.`__time`, '60000 milliseconds')",
            DEFAULT_GRACE_MS,
            "update",
        ),
        (
            "HOPPING (SIZE 1 MINUTE, ADVANCE BY 10 SECONDS, GRACE PERIOD 5 SECONDS)",
            "window(`orders`.`__time`, '60000 milliseconds', '10000 milliseconds')",
            5_000,
            "update",
        ),
        ("SESSION (1 MINUTE)", "session_window(`orders`.`__time`, '60001 milliseconds')", 0, "append"),
        (
            "SESSION (1 MINUTE, GRACE PERIOD 1 HOUR)",
            "session_window(`orders`.`__time`, '60001 milliseconds')",
            3_600_000,
            "append",
        ),
    ],
)
def test_window_is_grouped_by_and_sets_the_watermark(window: str, sql: str, grace: int, running: str) -> None:
    plan = compiled(
        f"SELECT customer, COUNT(*) AS n, WINDOWEND FROM orders WINDOW {window} GROUP BY customer"
    )
    assert plan.sql.endswith(f"GROUP BY `orders`.`customer`, {sql}")
    assert (plan.inputs[0].watermark_ms, plan.running) == (grace, running)
    assert plan.window is not None


def test_having_deletes_rows_of_a_table_and_filters_a_push_query() -> None:
    text = "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer HAVING COUNT(*) > 1"
    assert "coalesce(COUNT(*) > 1, false) AS __keep" in compiled(text).sql
    assert compiled(f"{text} EMIT CHANGES", "push").sql.endswith("HAVING COUNT(*) > 1")


def test_where_deletes_rows_of_a_table() -> None:
    plan = compiled("SELECT name, UCASE(region) AS r FROM customers WHERE region = 'EU'")
    assert (
        "coalesce(NOT `customers`.`__deleted` AND (`customers`.`region` = 'EU'), false) AS __keep" in plan.sql
    )
    assert "WHERE" not in plan.sql
    shown = compiled("SELECT name FROM customers WHERE region = 'EU' EMIT CHANGES", "push")
    assert shown.sql.endswith("WHERE NOT `customers`.`__deleted` AND (`customers`.`region` = 'EU')")


def test_records_are_ordered_by_offset_only_within_a_partition() -> None:
    by_key = compiled("SELECT id, LATEST_BY_OFFSET(total) AS t FROM orders GROUP BY id").sql
    assert "MAX_BY(`orders`.`total`, `orders`.`ROWOFFSET`)" in by_key
    other = compiled("SELECT customer, LATEST_BY_OFFSET(total) AS t FROM orders GROUP BY customer").sql
    assert "MAX_BY(`orders`.`total`, STRUCT(`orders`.`__appended`, `orders`.`ROWOFFSET`))" in other


def test_stream_stream_join() -> None:
    plan = compiled(
        "SELECT o.id, p.id, amount FROM orders o JOIN payments p WITHIN 90 SECONDS ON o.id = p.order_id"
    )
    assert "`p`.`__time` >= `o`.`__time` - INTERVAL '90.000' SECOND" in plan.sql
    assert [column.name for column in plan.columns] == ["o_id", "p_id", "amount"]
    assert plan.key_columns == ["o_id"]
    assert [given.watermark_ms for given in plan.inputs] == [90_000 + DEFAULT_GRACE_MS] * 2
    outer = compiled(
        "SELECT o.id, amount FROM orders o LEFT JOIN payments p WITHIN (1 MINUTE, 1 DAY) GRACE PERIOD 1 HOUR "
        "ON o.id = p.order_id"
    )
    assert [given.watermark_ms for given in outer.inputs] == [25 * 3_600_000] * 2


def test_stream_table_join() -> None:
    plan = compiled("SELECT o.customer, c.region FROM orders o LEFT JOIN customers c ON c.name = o.customer")
    assert [given.reading for given in plan.inputs] == ["stream", "now"]
    assert (plan.kind, plan.running, plan.key_columns) == ("STREAM", "append", ["customer"])
    assert plan.sql.count("`o`.`__time` AS __time") == 1


def test_queries_over_tables_are_recomputed() -> None:
    joined = compiled("SELECT c.name, r.manager FROM customers c JOIN regions r ON c.region = r.region")
    assert (joined.kind, joined.running, joined.key_columns) == ("TABLE", "recompute", ["name"])
    counted = compiled("SELECT region, COUNT(*) AS n FROM customers GROUP BY region")
    assert (counted.running, counted.key_columns) == ("recompute", ["region"])


def test_star_of_several_sources_has_prefixed_columns() -> None:
    plan = compiled("SELECT * FROM orders o JOIN customers c ON o.customer = c.name")
    assert [column.name for column in plan.columns][-2:] == ["c_name", "c_region"]
    assert plan.key_columns == ["o_customer"]


def test_pull_query_of_a_windowed_table_has_its_bounds() -> None:
    plan = compiled("SELECT * FROM hourly WHERE name = 'x' AND WINDOWSTART > 5 LIMIT 2", "pull")
    assert [column.name for column in plan.columns] == ["name", "WINDOWSTART", "WINDOWEND", "region"]
    assert plan.sql.endswith("LIMIT 2")


def test_aggregate_of_a_stream_stream_join_is_split_in_two() -> None:
    (statement,) = parse(
        "CREATE TABLE t AS SELECT o.addr->city AS city, SUM(p.amount) AS s FROM orders o JOIN payments p "
        "WITHIN 1 HOUR ON o.id = p.order_id WHERE p.amount > 0 GROUP BY o.addr->city HAVING SUM(amount) > 1"
    )
    assert isinstance(statement, CreateAs)
    parts = split_query(statement, catalog())
    assert parts is not None
    assert parts.first.name.name == "t_join"
    assert "WITHIN 1 HOUR ON o.id = p.order_id WHERE" in parts.first_text
    assert "SUM(`p_amount`) AS `s` FROM `t_join` GROUP BY `o_addr`.`city`" in parts.second_text
    (quoting,) = parse(
        "CREATE TABLE t WITH (value_format='DELIMITED', value_delimiter='''') AS SELECT o.id, COUNT(*) AS n "
        "FROM orders o JOIN payments p WITHIN 1 HOUR ON o.id = p.order_id GROUP BY o.id"
    )
    assert isinstance(quoting, CreateAs)
    parts = split_query(quoting, catalog())
    assert parts is not None
    assert parts.second.properties == quoting.properties
    (alone,) = parse("CREATE TABLE t AS SELECT id, COUNT(*) AS n FROM orders GROUP BY id")
    assert isinstance(alone, CreateAs)
    assert split_query(alone, catalog()) is None


@pytest.mark.parametrize(
    ("purpose", "text", "words"),
    [
        ("push", "SELECT custmer FROM orders", "Did you mean customer? The columns are id, customer"),
        ("push", "SELECT * FROM ordrs", "Did you mean orders?"),
        ("push", "SELECT o.nothing FROM orders o", "Unknown column nothing"),
        ("push", "SELECT x.* FROM orders o", "Unknown source x"),
        ("persist", "SELECT customer FROM orders", "must include the key of the result: orders.id"),
        (
            "persist",
            "SELECT id, AS_VALUE(customer) FROM orders PARTITION BY customer",
            "key of the result: orders.customer",
        ),
        ("persist", "SELECT id, id FROM orders", "Duplicate column name id"),
        ("persist", "SELECT id, customer, COUNT(*) FROM orders GROUP BY id", "LATEST_BY_OFFSET(customer)"),
        (
            "persist",
            "SELECT id, COUNT(*) FROM orders GROUP BY id HAVING total > 1",
            "Column total must be in GROUP BY",
        ),
        ("push", "SELECT COUNT(*) FROM orders EMIT CHANGES", "needs GROUP BY"),
        ("push", "SELECT id FROM orders WINDOW TUMBLING (SIZE 1 DAY)", "needs GROUP BY"),
        ("push", "SELECT id FROM orders HAVING id > 1", "use WHERE"),
        ("push", "SELECT id, COUNT(*) FROM orders WHERE COUNT(*) > 1 GROUP BY id", "Use HAVING"),
        ("push", "SELECT id FROM orders ORDER BY id", "Only pull queries support ORDER BY"),
        ("persist", "SELECT id FROM orders LIMIT 3", "cannot have a LIMIT"),
        ("persist", "SELECT name FROM customers PARTITION BY region", "the result is a table"),
        (
            "push",
            "SELECT name, COUNT(*) FROM customers WINDOW TUMBLING (SIZE 1 DAY) GROUP BY name",
            "the source is a table",
        ),
        ("push", "SELECT WINDOWSTART FROM orders", "needs a WINDOW clause"),
        (
            "push",
            "SELECT id FROM orders o JOIN payments p WITHIN 1 HOUR ON o.id = p.order_id",
            "Write o.id or p.id",
        ),
        ("push", "SELECT o.id FROM orders o JOIN payments p ON o.id = p.order_id", "WITHIN 1 HOUR"),
        (
            "push",
            "SELECT o.id FROM orders o JOIN customers c WITHIN 1 DAY ON o.customer = c.name",
            "Remove WITHIN",
        ),
        (
            "push",
            "SELECT c.name FROM customers c JOIN orders o ON o.customer = c.name",
            "Put the stream first",
        ),
        (
            "push",
            "SELECT o.id FROM orders o FULL JOIN customers c ON o.customer = c.name",
            "JOIN or LEFT JOIN",
        ),
        (
            "push",
            "SELECT o.id FROM orders o JOIN customers c ON o.id > 1",
            "must compare a column of each side",
        ),
        (
            "push",
            "SELECT o.id FROM orders o JOIN customers o ON o.customer = o.name",
            "Duplicate source name o",
        ),
        ("push", "SELECT * FROM orders GROUP BY id", "* is not allowed with GROUP BY"),
    ],
)
def test_invalid_query_is_rejected(purpose: Purpose, text: str, words: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(text, purpose)
    assert words in str(caught.value)
    assert caught.value.place is not None
