"""Parses statements. Only the syntax is checked here; names are resolved when a statement is executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.create import read_create, read_kind, read_properties
from moldau.pipelines.sql.parse.cursor import Cursor
from moldau.pipelines.sql.parse.dialect import expression, split_statements
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
#: Statements of ksqlDB that are not supported, by their first words, and the alternatives.
_UNSUPPORTED = {
    "ALTER": "Use CREATE OR REPLACE STREAM|TABLE with all columns.",
    "ASSERT": "Use SHOW TOPICS, DESCRIBE name or SELECT.",
    "CREATE TYPE": "Write the type, STRUCT<…>, where it is used.",
    "DROP TYPE": "Custom types are not supported; write types where they are used.",
    "SHOW TYPES": "Custom types are not supported; write types where they are used.",
    "CREATE SOURCE CONNECTOR": "Read external data with a pipeline: moldau pipeline run FILE.",
    "CREATE SINK CONNECTOR": "Write external data with a pipeline: moldau pipeline run FILE.",
    "CREATE CONNECTOR": "Use a pipeline: moldau pipeline run FILE.",
    "DROP CONNECTOR": "Stop a pipeline with: moldau pipeline stop NAME.",
    "DESCRIBE CONNECTOR": "Show the status of pipelines with: moldau pipeline status.",
    "SHOW CONNECTORS": "List pipelines with: moldau pipeline list.",
    "SHOW CONNECTOR": "List pipelines with: moldau pipeline list.",
    "DEFINE": "Write the value, or substitute variables: envsubst < script.sql | moldau sql",
    "UNDEFINE": "Variables are not supported.",
    "SHOW VARIABLES": "Variables are not supported.",
    "SPOOL": "Redirect the output of the command: moldau sql -e '…' --output csv > file.csv",
    "UPDATE": "Insert a record with the same key to replace a row: INSERT INTO table VALUES (…).",
    "DELETE": "Produce a record with the key and no value (a tombstone) to delete a row of a table.",
}


def parse(text: str) -> Iterator[Statement]:
    """Parse the statements of a text one by one, so that those before an error can be executed."""
    for tokens in split_statements(text):
        yield parse_tokens(text, tokens)


def parse_tokens(text: str, tokens: list[Token]) -> Statement:
    cursor = Cursor(text, tokens)
    _reject_unsupported(cursor)
    read = _STATEMENTS.get(cursor.word())
    if read is None:
        raise cursor.unexpected(*_STATEMENTS)
    statement = read(cursor)
    cursor.end()
    return statement


def _reject_unsupported(cursor: Cursor) -> None:
    """Raise an error with the alternative for a ksqlDB statement that is not supported."""
    words = [cursor.word(ahead).replace("LIST", "SHOW") for ahead in range(3)]
    for count in (1, 2, 3):
        name = " ".join(words[:count])
        if name in _UNSUPPORTED:
            raise SqlError(f"{name} is not supported", cursor.place(), _UNSUPPORTED[name])


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
    """Parse the values of one row, and check their number if columns were named."""
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
        interval = max(1, cursor.number("an interval"))
    limit = cursor.number("the number of records") if cursor.accept("LIMIT") else None
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
