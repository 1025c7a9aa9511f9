"""Statements from text. Only what a statement says by itself is checked here; names are looked up later."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.create import read_create, read_kind, read_properties
from moldau.pipelines.sql.parse.cursor import Cursor
from moldau.pipelines.sql.parse.dialect import expression
from moldau.pipelines.sql.parse.dialect import statements as split
from moldau.pipelines.sql.parse.select import parse_select
from moldau.pipelines.sql.parse.statements import (
    CreateAs,
    Describe,
    Drop,
    Explain,
    InsertSelect,
    InsertValues,
    Named,
    Pause,
    Print,
    RunScript,
    Select,
    SetProperty,
    Show,
    Statement,
    Terminate,
)

SHOWN = ("STREAMS", "TABLES", "TOPICS", "QUERIES", "FUNCTIONS", "PROPERTIES")
#: Statements of ksqlDB that are not here, by their first words, and what to do instead.
_ELSEWHERE = {
    "ALTER": "Write CREATE OR REPLACE STREAM|TABLE with all columns, old and new.",
    "ASSERT": "SHOW TOPICS, DESCRIBE name and SELECT tell what is there.",
    "CREATE TYPE": "Write the type itself, STRUCT<…>, where it is used.",
    "DROP TYPE": "There are none: types are written where they are used.",
    "SHOW TYPES": "There are none: types are written where they are used.",
    "CREATE SOURCE CONNECTOR": "Data from elsewhere comes by a pipeline: moldau pipeline run FILE.",
    "CREATE SINK CONNECTOR": "Data goes elsewhere by a pipeline: moldau pipeline run FILE.",
    "CREATE CONNECTOR": "Data comes and goes by pipelines: moldau pipeline run FILE.",
    "DROP CONNECTOR": "moldau pipeline stop NAME stops a pipeline.",
    "DESCRIBE CONNECTOR": "moldau pipeline status tells how pipelines are.",
    "SHOW CONNECTORS": "moldau pipeline list shows the pipelines there are.",
    "SHOW CONNECTOR": "moldau pipeline list shows the pipelines there are.",
    "DEFINE": "Write the value itself, or have it put in: envsubst < script.sql | moldau sql",
    "UNDEFINE": "There are no variables.",
    "SHOW VARIABLES": "There are no variables.",
    "SPOOL": "From the command line results go to a file: moldau sql -e '…' --output csv > file.csv",
    "UPDATE": "A record with the same key replaces a row: INSERT INTO table VALUES (…).",
    "DELETE": "A record of the key without a value deletes a row of a table.",
}


def parse(text: str) -> Iterator[Statement]:
    """The statements of a text, one by one, so that those before a mistake are run."""
    for tokens in split(text):
        yield parse_tokens(text, tokens)


def parse_tokens(text: str, tokens: list[Token]) -> Statement:
    cursor = Cursor(text, tokens)
    _refuse(cursor)
    read = _STATEMENTS.get(cursor.word())
    if read is None:
        raise cursor.unexpected(*_STATEMENTS)
    statement = read(cursor)
    cursor.end()
    return statement


def _refuse(cursor: Cursor) -> None:
    """Say what to do instead of a statement of ksqlDB that is not here."""
    words = [cursor.word(ahead).replace("LIST", "SHOW") for ahead in range(3)]
    for count in (1, 2, 3):
        name = " ".join(words[:count])
        if name in _ELSEWHERE:
            raise SqlError(f"There is no {name} here", cursor.place(), _ELSEWHERE[name])


def _insert(cursor: Cursor) -> InsertSelect | InsertValues:
    cursor.expect("INSERT", "INTO")
    name = cursor.named("the name of a stream")
    if cursor.word() == "SELECT":
        return InsertSelect(name, parse_select(cursor))
    if cursor.accept("WITH"):
        properties = read_properties(cursor)
        return InsertSelect(name, parse_select(cursor), properties)
    columns: list[Named] = []
    if cursor.accept("("):
        columns.append(cursor.named("a column"))
        while cursor.accept(","):
            columns.append(cursor.named("a column"))
        cursor.expect(")")
    if cursor.word() != "VALUES":
        raise cursor.unexpected("VALUES", "SELECT")
    cursor.take()
    rows = [_row(cursor, len(columns))]
    while cursor.accept(","):
        rows.append(_row(cursor, len(columns)))
    return InsertValues(name, tuple(columns), tuple(rows))


def _row(cursor: Cursor, columns: int) -> tuple[exp.Expression, ...]:
    """The values of one row, as many as columns were named if any were."""
    place = cursor.place()
    cursor.expect("(")
    values = [_value(cursor)]
    while cursor.accept(","):
        values.append(_value(cursor))
    cursor.expect(")")
    if columns and len(values) != columns:
        raise SqlError(
            f"{columns} columns, but {len(values)} values", place, "Write a value for each column."
        )
    return tuple(values)


def _value(cursor: Cursor) -> exp.Expression:
    tokens = cursor.until(",")
    if not tokens:
        raise cursor.unexpected("a value")
    return expression(cursor.text, tokens)


def _show(cursor: Cursor) -> Show:
    cursor.take()
    everything = cursor.accept("ALL")
    what = cursor.word()
    if what not in SHOWN:
        raise cursor.unexpected(*SHOWN)
    cursor.take()
    return Show(what, cursor.accept("EXTENDED"), everything)


def _describe(cursor: Cursor) -> Describe:
    cursor.take()
    if cursor.accept("FUNCTION"):
        return Describe(cursor.named("the name of a function"), function=True)
    name = cursor.named("the name of a stream or table")
    return Describe(name, cursor.accept("EXTENDED"))


def _explain(cursor: Cursor) -> Explain:
    cursor.expect("EXPLAIN")
    if cursor.word() == "SELECT":
        return Explain(parse_select(cursor))
    if cursor.word() == "CREATE":
        created = read_create(cursor)
        if isinstance(created, CreateAs):
            return Explain(created.select)
        raise SqlError("EXPLAIN takes a SELECT, or the name of a query", created.name.place)
    return Explain(cursor.named("SELECT, or the name of a query"))


def _terminate(cursor: Cursor) -> Terminate:
    cursor.expect("TERMINATE")
    return Terminate(_query_or_all(cursor))


def _query_or_all(cursor: Cursor) -> Named | None:
    cursor.accept("QUERY")
    return None if cursor.accept("ALL") else cursor.named("the name of a query, or ALL")


def _pause(cursor: Cursor) -> Pause:
    resume = cursor.take().text.upper() == "RESUME"
    return Pause(_query_or_all(cursor), resume)


def _drop(cursor: Cursor) -> Drop:
    cursor.expect("DROP")
    kind = read_kind(cursor)
    if_exists = cursor.accept("IF", "EXISTS")
    return Drop(kind, cursor.named("a name"), if_exists, cursor.accept("DELETE", "TOPIC"))


def _print(cursor: Cursor) -> Print:
    cursor.expect("PRINT")
    place, token = cursor.place(), cursor.peek()
    is_string = token is not None and token.token_type is TokenType.STRING
    topic = Named(cursor.string("a topic") if is_string else cursor.name("a topic"), place)
    from_beginning = cursor.accept("FROM", "BEGINNING")
    interval = 1
    if cursor.accept("INTERVAL") or cursor.accept("SAMPLE"):
        interval = max(1, cursor.number("each how-many-th record"))
    limit = cursor.number("how many records") if cursor.accept("LIMIT") else None
    return Print(topic, from_beginning, interval, limit)


def _set(cursor: Cursor) -> SetProperty:
    cursor.expect("SET")
    name = cursor.string("the name of a setting")
    cursor.expect("=")
    return SetProperty(name, cursor.string("its value"))


def _unset(cursor: Cursor) -> SetProperty:
    cursor.expect("UNSET")
    return SetProperty(cursor.string("the name of a setting"), None)


def _run_script(cursor: Cursor) -> RunScript:
    cursor.expect("RUN", "SCRIPT")
    place = cursor.place()
    return RunScript(cursor.string("the name of a file"), place)


def _select(cursor: Cursor) -> Select:
    return parse_select(cursor)


_STATEMENTS: dict[str, Callable[[Cursor], Statement]] = {
    "SELECT": _select,
    "CREATE": read_create,
    "INSERT": _insert,
    "SHOW": _show,
    "LIST": _show,
    "DESCRIBE": _describe,
    "EXPLAIN": _explain,
    "TERMINATE": _terminate,
    "PAUSE": _pause,
    "RESUME": _pause,
    "DROP": _drop,
    "PRINT": _print,
    "SET": _set,
    "UNSET": _unset,
    "RUN": _run_script,
}
