"""Errors of statements name the place and the remedy."""

from __future__ import annotations

import pytest

from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.parser import parse


def error_of(text: str) -> str:
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
        ("SELECT 'abc FROM s;", "line 1, column 8", "Unterminated quote"),
        ("SELCT a FROM s;", "line 1, column 1", "Did you mean SELECT?"),
        ("SELECT a s;", "line 1, column 11", "Expected FROM"),
        ("INSERT INTO s (a, b) VALUES (1);", "line 1, column 29", "2 columns, but 1 values"),
        ("PAUSE;", "line 1, column 6", "or ALL"),
        ("CREATE STREAM s (a INTT) WITH (topic='t');", "line 1, column 20", "Did you mean INT?"),
        ("CREATE TABLE t (a INT KEY) WITH (topic='t');", "line 1, column 23", "PRIMARY KEY"),
        ("SELECT COUNT(* FROM s;", "line 1, column 16", "Expecting )"),
    ],
)
def test_rejected_statement_names_its_place_and_the_remedy(text: str, place: str, words: str) -> None:
    message = error_of(text)
    assert message.startswith(place), message
    assert words in message
    assert "^" in message
