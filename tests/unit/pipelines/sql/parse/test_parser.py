"""Statements are parsed, and syntax errors name the place and the expected words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.create import parse_type
from moldau.pipelines.sql.parse.dialect import is_complete
from moldau.pipelines.sql.parse.parser import parse
from moldau.pipelines.sql.parse.statements import (
    CreateAs,
    CreateSource,
    Describe,
    Drop,
    Explain,
    InsertSelect,
    InsertValues,
    Print,
    RunScript,
    Select,
    SetProperty,
    Show,
    Statement,
    Terminate,
    Window,
)
from moldau.pipelines.sql.types import SqlType, fits, from_spark

_WORDS = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "WINDOW",
    "(",
    ")",
    ",",
    "x",
    "'y'",
    "1",
    "JOIN",
    "ON",
    "=",
]


def one(text: str) -> Statement:
    (statement,) = parse(text)
    return statement


def test_create_stream_with_every_type() -> None:
    statement = one(
        "CREATE OR REPLACE STREAM IF NOT EXISTS s (a BOOLEAN KEY, b INT, c BIGINT, d DOUBLE, "
        "e DECIMAL(10, 2), f VARCHAR(20), g STRING, h BYTES, i TIMESTAMP, j DATE, k TIME, "
        "l ARRAY<MAP<VARCHAR, INT>>, "
        "m STRUCT<x INT, `y z` ARRAY<INT>>, n ARRAY<STRUCT<key STRING, value BYTES>> HEADERS, "
        "o BYTES HEADER('p')) "
        "WITH (KAFKA_TOPIC='t', value_format='JSON', partitions=3);"
    )
    assert isinstance(statement, CreateSource)
    assert (statement.kind, statement.name.name, statement.replace, statement.if_not_exists) == (
        "STREAM",
        "s",
        True,
        True,
    )
    assert statement.properties == {"kafka_topic": "t", "value_format": "JSON", "partitions": "3"}
    types = {column.name: str(column.type) for column in statement.columns}
    assert types["e"] == "DECIMAL(10, 2)"
    assert types["l"] == "ARRAY<MAP<VARCHAR, INTEGER>>"
    assert types["m"] == "STRUCT<`x` INTEGER, `y z` ARRAY<INTEGER>>"
    assert [column.role for column in statement.columns if column.role != "VALUE"] == [
        "KEY",
        "HEADERS",
        "HEADERS",
    ]
    assert statement.columns[-1].header == "p"
    for column in statement.columns:
        assert parse_type(str(column.type)) == column.type


def test_table_has_a_primary_key_and_stream_has_a_key() -> None:
    table = one("CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH (topic='t')")
    assert isinstance(table, CreateSource)
    assert table.columns[0].role == "KEY"
    with pytest.raises(SqlError, match="PRIMARY KEY"):
        one("CREATE TABLE t (id INT KEY) WITH (topic='t')")
    with pytest.raises(SqlError, match="declared KEY"):
        one("CREATE STREAM t (id INT PRIMARY KEY) WITH (topic='t')")


def test_select_with_every_clause() -> None:
    statement = one(
        "CREATE TABLE t WITH (format='JSON') AS SELECT o.id, COUNT(*) AS n, a->b[1] x FROM orders AS o "
        "LEFT OUTER JOIN payments p WITHIN (1 HOUR, 2 DAYS) GRACE PERIOD 5 MINUTES ON o.id = p.order_id "
        "JOIN customers c ON c.name = o.customer "
        "WINDOW HOPPING (SIZE 1 MINUTE, ADVANCE BY 10 SECONDS, RETENTION 1 WEEK, GRACE PERIOD 0 SECONDS) "
        "WHERE CASE WHEN o.id > 1 THEN true ELSE false END GROUP BY o.id, c.name "
        "HAVING COUNT(*) > 1 EMIT FINAL"
    )
    assert isinstance(statement, CreateAs)
    select = statement.select
    assert [item.alias for item in select.items] == [None, "n", "x"]
    first, second = select.joins
    assert (first.kind, first.before_ms, first.after_ms, first.grace_ms) == (
        "LEFT",
        3_600_000,
        172_800_000,
        300_000,
    )
    assert (second.kind, second.before_ms) == ("INNER", None)
    assert select.window == Window("HOPPING", 60_000, 10_000, 0, 604_800_000)
    assert len(select.group_by) == 2
    assert select.emit == "FINAL"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("INSERT INTO s SELECT * FROM t EMIT CHANGES", InsertSelect),
        ("INSERT INTO s (a, b) VALUES (1, 'it''s'), (2, NULL)", InsertValues),
        ("INSERT INTO s VALUES (ARRAY[1, 2], MAP('a' := 1), STRUCT(x := 1))", InsertValues),
        ("select a.*, * from s a partition by a.x emit changes limit 3", Select),
        ("SELECT a FROM s ORDER BY a DESC, b LIMIT 3", Select),
        ("SHOW STREAMS", Show),
        ("LIST ALL TOPICS EXTENDED", Show),
        ("DESCRIBE s EXTENDED", Describe),
        ("DESCRIBE FUNCTION ucase", Describe),
        ("EXPLAIN SELECT a FROM b", Explain),
        ("EXPLAIN CREATE STREAM c AS SELECT a FROM b", Explain),
        ("EXPLAIN CSAS_A_1", Explain),
        ("TERMINATE ALL", Terminate),
        ("TERMINATE QUERY CSAS_A_1", Terminate),
        ("DROP TABLE IF EXISTS t DELETE TOPIC", Drop),
        ("PRINT 'a.b-c' FROM BEGINNING INTERVAL 2 LIMIT 3", Print),
        ("PRINT orders", Print),
        ("SET 'auto.offset.reset' = 'earliest'", SetProperty),
        ("UNSET 'auto.offset.reset'", SetProperty),
        ("RUN SCRIPT '/tmp/a.sql'", RunScript),
    ],
)
def test_statement_kinds(text: str, kind: type) -> None:
    assert isinstance(one(text), kind)


def test_semicolons_in_strings_and_comments_do_not_end_a_statement() -> None:
    text = "SHOW STREAMS; -- a ; b\nPRINT 'x;y'; /* ; */ ;;SHOW TABLES"
    assert [type(statement) for statement in parse(text)] == [Show, Print, Show]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("SELEC 1", (1, 1), "Did you mean SELECT?"),
        ("SELECT FROM x", (1, 8), "Expected a column or an expression"),
        ("SELECT a b c FROM x", (1, 12), "Invalid expression"),
        ("SELECT a", (1, 9), "Expected FROM"),
        ("SELECT a FROM (SELECT b FROM c)", (1, 15), "CREATE STREAM … AS SELECT"),
        ("SELECT a FROM b, c", (1, 16), "Use a join"),
        ("SELECT a FROM b WHERE x IN (SELECT y FROM z)", (1, 23), "Subqueries are not supported"),
        ("SELECT DISTINCT a FROM b", (1, 1), "GROUP BY"),
        ("SELECT a FROM b\nWHERE", (2, 6), "Expected a condition"),
        ("SELECT a FROM b WINDOW TUMBLING (1 MINUTE) GROUP BY a", (1, 34), "Expected SIZE"),
        ("SELECT a FROM b WINDOW HOPPING (SIZE 1 MINUTE) GROUP BY a", (1, 24), "ADVANCE BY"),
        ("SELECT a FROM b WINDOW SLIDING (SIZE 1 MINUTE)", (1, 24), "Expected TUMBLING"),
        ("SELECT a FROM b GROUP BY a WINDOW TUMBLING (SIZE 1 YEAR)", (1, 52), "MINUTES"),
        ("SELECT a FROM b EMIT", (1, 21), "Expected CHANGES"),
        ("SELECT a FROM b LIMIT x", (1, 23), "the number of rows"),
        ("SELECT (a FROM b", (1, 11), "Invalid expression"),
        ("SELECT a) FROM b", (1, 9), "Expected FROM"),
        ("SELECT 'abc FROM b", (1, 8), "Unterminated quote"),
        ("SELECT a FROM b JOIN c", (1, 23), "Expected ON"),
        ("SELECT a FROM b LEFT c ON 1", (1, 22), "Expected JOIN"),
        ("CREATE STREAM", (1, 14), "the name of the stream"),
        ("CREATE STEAM s (a INT) WITH (topic='x')", (1, 8), "Did you mean STREAM?"),
        ("CREATE STREAM s (a FOO) WITH (x='y')", (1, 20), "Expected BOOLEAN"),
        ("CREATE STREAM s (a VARCHA) WITH (x='y')", (1, 20), "Did you mean VARCHAR?"),
        ("CREATE STREAM s (a INT, A INT) WITH (x='y')", (1, 25), "Duplicate column A"),
        ("CREATE STREAM s (a INT)", (1, 24), "Expected WITH"),
        ("CREATE STREAM s (a INT) AS SELECT b FROM c", (1, 15), "takes its columns from the SELECT"),
        ("CREATE STREAM s (a DECIMAL) WITH (x='y')", (1, 27), "Expected ("),
        ("INSERT INTO s (a, b) VALUES (1)", (1, 29), "2 columns, but 1 values"),
        ("INSERT INTO s", (1, 14), "Expected VALUES"),
        ("INSERT INTO s VALUES ()", (1, 23), "a value"),
        ("SHOW STREAM", (1, 6), "Did you mean STREAMS?"),
        ("DROP s", (1, 6), "Expected STREAM"),
        ("DROP STREAM s-x", (1, 14), "the end of the statement"),
        ("SET auto.offset.reset = 'x'", (1, 5), "in single quotes"),
        ("RUN SCRIPT file", (1, 12), "in single quotes"),
        ("PRINT", (1, 6), "a topic"),
    ],
)
def test_syntax_error_names_its_place(text: str, place: tuple[int, int], words: str) -> None:
    with pytest.raises(SqlError) as caught:
        list(parse(text))
    error = caught.value
    assert error.place is not None
    assert (error.place.line, error.place.column) == place
    assert words in str(error)
    assert "^" in str(error)


@given(st.text(alphabet="SELCTFROM *,();'`\"\n-ax1=<>[]", max_size=60))
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    try:
        list(parse(f"SELECT {text}"))
    except SqlError as error:
        assert str(error)


@given(st.lists(st.sampled_from(_WORDS)))
def test_words_in_any_order_are_parsed_or_rejected(words: list[str]) -> None:
    try:
        list(parse(" ".join(words)))
    except SqlError as error:
        assert str(error)


def test_statement_is_complete_after_a_semicolon_outside_strings() -> None:
    assert is_complete("SELECT 1;")
    assert is_complete("")
    assert not is_complete("SELECT 1")
    assert not is_complete("SELECT ';")
    assert not is_complete("SELECT 1; -- \n SHOW")


def test_types_convert_from_spark_and_fit_wider_types() -> None:
    assert from_spark("decimal(5,1)") == SqlType("DECIMAL", precision=5, scale=1)
    assert from_spark({"type": "array", "elementType": "long", "containsNull": True}) == parse_type(
        "ARRAY<BIGINT>"
    )
    assert parse_type("STRUCT<a INT, b ARRAY<STRING>>").ddl() == "STRUCT<`a`: INT, `b`: ARRAY<STRING>>"
    assert fits(parse_type("INT"), parse_type("DOUBLE"))
    assert not fits(parse_type("DOUBLE"), parse_type("INT"))
    assert not fits(parse_type("VARCHAR"), parse_type("INT"))
    assert fits(parse_type("ARRAY<INT>"), parse_type("ARRAY<BIGINT>"))
