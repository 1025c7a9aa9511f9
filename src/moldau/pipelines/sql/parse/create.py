"""Parses CREATE STREAM|TABLE, with its columns, types and properties."""

from __future__ import annotations

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.cursor import Cursor
from moldau.pipelines.sql.parse.dialect import tokenize
from moldau.pipelines.sql.parse.select import parse_select
from moldau.pipelines.sql.parse.statements import (
    ColumnDefinition,
    CreateAs,
    CreateSource,
    Properties,
    SourceKind,
)
from moldau.pipelines.sql.types import NAMES, SqlType


def read_create(cursor: Cursor) -> CreateSource | CreateAs:
    cursor.expect("CREATE")
    replace = cursor.accept("OR", "REPLACE")
    cursor.accept("SOURCE")
    kind = read_kind(cursor)
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.named(f"the name of the {kind.lower()}")
    columns = _columns(cursor, kind) if cursor.accept("(") else ()
    properties = read_properties(cursor) if cursor.accept("WITH") else Properties()
    if cursor.accept("AS"):
        if columns:
            raise SqlError("CREATE … AS SELECT takes its columns from the SELECT", name.place)
        return CreateAs(kind, name, properties, parse_select(cursor), replace, if_not_exists)
    if not properties:
        raise cursor.unexpected("WITH (topic='…', format='JSON')", "AS SELECT")
    return CreateSource(kind, name, columns, properties, replace, if_not_exists)


def read_kind(cursor: Cursor) -> SourceKind:
    if cursor.accept("STREAM"):
        return "STREAM"
    if cursor.accept("TABLE"):
        return "TABLE"
    raise cursor.unexpected("STREAM", "TABLE")


def _columns(cursor: Cursor, kind: SourceKind) -> tuple[ColumnDefinition, ...]:
    columns: dict[str, ColumnDefinition] = {}
    while True:
        place = cursor.place()
        column = _column(cursor, kind)
        if column.name.upper() in columns:
            raise SqlError(f"Duplicate column {column.name}", place)
        columns[column.name.upper()] = column
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(columns.values())


def _column(cursor: Cursor, kind: SourceKind) -> ColumnDefinition:
    name = cursor.name("the name of a column")
    column_type = read_type(cursor)
    place = cursor.place()
    if cursor.accept("PRIMARY", "KEY"):
        if kind == "STREAM":
            raise SqlError("A key column of a stream is declared KEY", place, "A stream has no primary key.")
        return ColumnDefinition(name, column_type, "KEY")
    if cursor.accept("KEY"):
        if kind == "TABLE":
            raise SqlError("A key column of a table is declared PRIMARY KEY", place)
        return ColumnDefinition(name, column_type, "KEY")
    if cursor.accept("HEADERS"):
        return ColumnDefinition(name, column_type, "HEADERS")
    if cursor.accept("HEADER"):
        cursor.expect("(")
        header = cursor.string("the name of a header")
        cursor.expect(")")
        return ColumnDefinition(name, column_type, "HEADERS", header)
    return ColumnDefinition(name, column_type)


def read_properties(cursor: Cursor) -> Properties:
    found = Properties()
    cursor.expect("(")
    while cursor.word() != ")":
        token = cursor.peek()
        is_string = token is not None and token.token_type is TokenType.STRING
        name = cursor.string("a name") if is_string else cursor.name("the name of a property")
        cursor.expect("=")
        found.places[name.lower()] = cursor.place()
        found[name.lower()] = cursor.take().text
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return found


def parse_type(text: str) -> SqlType:
    """Parse a type in ksqlDB's syntax, as `str` writes it."""
    return read_type(Cursor(text, tokenize(text)))


def read_type(cursor: Cursor) -> SqlType:
    word = cursor.word()
    if word in NAMES:
        cursor.take()
        if cursor.accept("("):
            cursor.number("a length")
            cursor.expect(")")
        return SqlType(NAMES[word])
    if word not in ("DECIMAL", "ARRAY", "MAP", "STRUCT"):
        raise cursor.unexpected(*NAMES, "DECIMAL", "ARRAY", "MAP", "STRUCT")
    cursor.take()
    if word == "DECIMAL":
        cursor.expect("(")
        precision = cursor.number("the precision")
        scale = cursor.number("the scale") if cursor.accept(",") else 0
        cursor.expect(")")
        return SqlType("DECIMAL", precision=precision, scale=scale)
    cursor.expect("<")
    fields: list[str] = []
    inner: list[SqlType] = []
    while True:
        if word == "STRUCT":
            fields.append(cursor.name("the name of a field"))
            cursor.accept(":")
        inner.append(read_type(cursor))
        if not cursor.accept(","):
            break
    cursor.expect(">")
    return SqlType(word, tuple(inner), tuple(fields))
