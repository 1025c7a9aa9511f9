"""Statements from text. Only what a statement says by itself is checked here; names are looked up later."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from moldau.pipelines.sql.cursor import Cursor
from moldau.pipelines.sql.dialect import expression, tokenize
from moldau.pipelines.sql.dialect import statements as split
from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.select_parser import parse_select
from moldau.pipelines.sql.statements import (
    ColumnDefinition,
    CreateAs,
    CreateSource,
    Describe,
    Drop,
    Explain,
    InsertSelect,
    InsertValues,
    Named,
    Print,
    RunScript,
    Select,
    SetProperty,
    Show,
    SourceKind,
    Statement,
    Terminate,
)
from moldau.pipelines.sql.types import NAMES, SqlType

SHOWN = ("STREAMS", "TABLES", "TOPICS", "QUERIES", "FUNCTIONS", "PROPERTIES", "VARIABLES", "TYPES")


def parse(text: str) -> Iterator[Statement]:
    """The statements of a text, one by one, so that those before a mistake are run."""
    for tokens in split(text):
        yield parse_tokens(text, tokens)


def parse_tokens(text: str, tokens: list[Token]) -> Statement:
    cursor = Cursor(text, tokens)
    read = _STATEMENTS.get(cursor.word())
    if read is None:
        raise cursor.unexpected(*_STATEMENTS)
    statement = read(cursor)
    cursor.end()
    return statement


def parse_type(text: str) -> SqlType:
    """A type as `str` writes it."""
    return _type(Cursor(text, tokenize(text)))


def _named(cursor: Cursor, what: str) -> Named:
    place = cursor.place()
    return Named(cursor.name(what), place)


def _create(cursor: Cursor) -> CreateSource | CreateAs:
    cursor.expect("CREATE")
    replace = cursor.accept("OR", "REPLACE")
    cursor.accept("SOURCE")
    kind = _kind(cursor)
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = _named(cursor, f"the name of the {kind.lower()}")
    columns = _columns(cursor, kind) if cursor.accept("(") else ()
    properties = _properties(cursor) if cursor.accept("WITH") else {}
    if cursor.accept("AS"):
        if columns:
            raise SqlError("The columns of … AS SELECT are those of the SELECT", name.place)
        return CreateAs(kind, name, properties, parse_select(cursor), replace, if_not_exists)
    if not properties:
        raise cursor.unexpected("WITH (topic='…', format='JSON')", "AS SELECT")
    return CreateSource(kind, name, columns, properties, replace, if_not_exists)


def _kind(cursor: Cursor) -> SourceKind:
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
            raise SqlError(f"Column {column.name} is there twice", place)
        columns[column.name.upper()] = column
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(columns.values())


def _column(cursor: Cursor, kind: SourceKind) -> ColumnDefinition:
    name = cursor.name("the name of a column")
    column_type = _type(cursor)
    place = cursor.place()
    if cursor.accept("PRIMARY", "KEY"):
        if kind == "STREAM":
            raise SqlError(
                "The columns of a stream's key are marked KEY", place, "A stream has no primary key."
            )
        return ColumnDefinition(name, column_type, "KEY")
    if cursor.accept("KEY"):
        if kind == "TABLE":
            raise SqlError("The columns of a table's key are marked PRIMARY KEY", place)
        return ColumnDefinition(name, column_type, "KEY")
    if cursor.accept("HEADERS"):
        return ColumnDefinition(name, column_type, "HEADERS")
    if cursor.accept("HEADER"):
        cursor.expect("(")
        header = cursor.string("the name of a header")
        cursor.expect(")")
        return ColumnDefinition(name, column_type, "HEADERS", header)
    return ColumnDefinition(name, column_type)


def _type(cursor: Cursor) -> SqlType:
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
        precision = cursor.number("how many digits")
        scale = cursor.number("how many of them behind the point") if cursor.accept(",") else 0
        cursor.expect(")")
        return SqlType("DECIMAL", precision=precision, scale=scale)
    cursor.expect("<")
    fields: list[str] = []
    inner: list[SqlType] = []
    while True:
        if word == "STRUCT":
            fields.append(cursor.name("the name of a field"))
            cursor.accept(":")
        inner.append(_type(cursor))
        if not cursor.accept(","):
            break
    cursor.expect(">")
    return SqlType(word, tuple(inner), tuple(fields))


def _properties(cursor: Cursor) -> dict[str, str]:
    found: dict[str, str] = {}
    cursor.expect("(")
    while cursor.word() != ")":
        token = cursor.peek()
        is_string = token is not None and token.token_type is TokenType.STRING
        name = cursor.string("a name") if is_string else cursor.name("the name of a property")
        cursor.expect("=")
        found[name.lower()] = cursor.take().text
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return found


def _insert(cursor: Cursor) -> InsertSelect | InsertValues:
    cursor.expect("INSERT", "INTO")
    name = _named(cursor, "the name of a stream")
    if cursor.word() == "SELECT":
        return InsertSelect(name, parse_select(cursor))
    if cursor.accept("WITH"):
        properties = _properties(cursor)
        return InsertSelect(name, parse_select(cursor), properties)
    columns: list[Named] = []
    if cursor.accept("("):
        columns.append(_named(cursor, "a column"))
        while cursor.accept(","):
            columns.append(_named(cursor, "a column"))
        cursor.expect(")")
    if cursor.word() != "VALUES":
        raise cursor.unexpected("VALUES", "SELECT")
    cursor.take()
    rows = []
    while True:
        place = cursor.place()
        cursor.expect("(")
        values = []
        while True:
            tokens = cursor.until(",")
            if not tokens:
                raise cursor.unexpected("a value")
            values.append(expression(cursor.text, tokens))
            if not cursor.accept(","):
                break
        cursor.expect(")")
        if columns and len(values) != len(columns):
            raise SqlError(f"{len(columns)} columns, but {len(values)} values", place)
        rows.append(tuple(values))
        if not cursor.accept(","):
            break
    return InsertValues(name, tuple(columns), tuple(rows))


def _show(cursor: Cursor) -> Show:
    cursor.take()
    cursor.accept("ALL")
    what = cursor.word()
    if what not in SHOWN:
        raise cursor.unexpected(*SHOWN)
    cursor.take()
    return Show(what, cursor.accept("EXTENDED"))


def _describe(cursor: Cursor) -> Describe:
    cursor.take()
    if cursor.accept("FUNCTION"):
        return Describe(_named(cursor, "the name of a function"), function=True)
    name = _named(cursor, "the name of a stream or table")
    return Describe(name, cursor.accept("EXTENDED"))


def _explain(cursor: Cursor) -> Explain:
    cursor.expect("EXPLAIN")
    if cursor.word() == "SELECT":
        return Explain(parse_select(cursor))
    if cursor.word() == "CREATE":
        created = _create(cursor)
        if isinstance(created, CreateAs):
            return Explain(created.select)
        raise SqlError("EXPLAIN takes a SELECT, or the name of a query", created.name.place)
    return Explain(_named(cursor, "SELECT, or the name of a query"))


def _terminate(cursor: Cursor) -> Terminate:
    cursor.expect("TERMINATE")
    cursor.accept("QUERY")
    if cursor.accept("ALL"):
        return Terminate(None)
    return Terminate(_named(cursor, "the name of a query, or ALL"))


def _drop(cursor: Cursor) -> Drop:
    cursor.expect("DROP")
    kind = _kind(cursor)
    if_exists = cursor.accept("IF", "EXISTS")
    return Drop(kind, _named(cursor, "a name"), if_exists, cursor.accept("DELETE", "TOPIC"))


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
    "CREATE": _create,
    "INSERT": _insert,
    "SHOW": _show,
    "LIST": _show,
    "DESCRIBE": _describe,
    "EXPLAIN": _explain,
    "TERMINATE": _terminate,
    "DROP": _drop,
    "PRINT": _print,
    "SET": _set,
    "UNSET": _unset,
    "RUN": _run_script,
}
