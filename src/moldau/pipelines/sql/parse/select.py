"""Parses SELECT: its clauses, some of which only ksqlDB has; sqlglot parses the expressions."""

from __future__ import annotations

from typing import Literal

from sqlglot import exp
from sqlglot.tokens import Token  # type: ignore[attr-defined]

from moldau.pipelines.sql.errors import Place, SqlError
from moldau.pipelines.sql.parse.cursor import Cursor
from moldau.pipelines.sql.parse.dialect import expression
from moldau.pipelines.sql.parse.statements import From, Item, Join, Named, Select, Window

_JOIN_WORDS = ("INNER", "LEFT", "RIGHT", "FULL", "JOIN")
_CLAUSES = ("WINDOW", "WHERE", "GROUP", "PARTITION", "HAVING", "ORDER", "EMIT", "LIMIT")
_NOT_ALIASES = (*_JOIN_WORDS, *_CLAUSES, "WITHIN", "GRACE", "ON", "CROSS", "UNION")


def parse_select(cursor: Cursor) -> Select:
    first = cursor.position
    cursor.expect("SELECT")
    if cursor.accept("DISTINCT"):
        raise SqlError(
            "SELECT DISTINCT is not supported over topics",
            cursor.place_since(first),
            "Create a table: CREATE TABLE … AS SELECT key, COUNT(*) FROM … GROUP BY key",
        )
    items = [_item(cursor)]
    while cursor.accept(","):
        items.append(_item(cursor))
    if cursor.word() != "FROM":
        raise cursor.unexpected("FROM", ",")
    cursor.expect("FROM")
    source = _from(cursor)
    joins = []
    while cursor.word() in _JOIN_WORDS:
        joins.append(_join(cursor))
    return _clauses(cursor, first, items, source, joins)


def _clauses(cursor: Cursor, first: int, items: list[Item], source: From, joins: list[Join]) -> Select:
    window = where = having = order_by = limit = None
    group_by: tuple[exp.Expression, ...] = ()
    partition_by: tuple[exp.Expression, ...] = ()
    emit: Literal["CHANGES", "FINAL"] | None = None
    while not cursor.at_end:
        if cursor.accept("WINDOW"):
            window = _window(cursor)
        elif cursor.accept("WHERE"):
            where = _expression(cursor, "a condition")
        elif cursor.accept("GROUP", "BY"):
            group_by = _expressions(cursor)
        elif cursor.accept("PARTITION", "BY"):
            partition_by = _expressions(cursor)
        elif cursor.accept("HAVING"):
            having = _expression(cursor, "a condition")
        elif cursor.accept("ORDER", "BY"):
            order_by = ", ".join(_source_text(cursor) for _ in _commas(cursor))
        elif cursor.accept("EMIT"):
            emit = "FINAL" if cursor.accept("FINAL") else "CHANGES"
            if emit == "CHANGES":
                cursor.expect("CHANGES")
        elif cursor.accept("LIMIT"):
            limit = cursor.number("the number of rows")
        else:
            raise cursor.unexpected(*_CLAUSES)
    place = cursor.place_since(first)
    return Select(
        text=cursor.text[place.start : place.end],
        items=tuple(items),
        source=source,
        place=place,
        joins=tuple(joins),
        window=window,
        where=where,
        group_by=group_by,
        partition_by=partition_by,
        having=having,
        order_by=order_by,
        emit=emit,
        limit=limit,
    )


def _commas(cursor: Cursor) -> list[None]:
    """Return one entry for each of the comma-separated items that follow."""
    mark, count = cursor.position, 1
    cursor.until(",", *_CLAUSES)
    while cursor.accept(","):
        cursor.until(",", *_CLAUSES)
        count += 1
    cursor.back_to(mark)
    return [None] * count


def _source_text(cursor: Cursor) -> str:
    tokens = cursor.until(",", *_CLAUSES)
    cursor.accept(",")
    if not tokens:
        raise cursor.unexpected("a column")
    return cursor.text[tokens[0].start : tokens[-1].end + 1]


def _item(cursor: Cursor) -> Item:
    first = cursor.position
    if cursor.accept("*"):
        return Item(exp.Star(), None, cursor.place_since(first), star="*")
    if cursor.word(1) == "." and cursor.word(2) == "*":
        alias = cursor.name("a name")
        cursor.expect(".", "*")
        return Item(exp.Star(), None, cursor.place_since(first), star=alias)
    tokens = cursor.until(",", "FROM", *_CLAUSES, *_JOIN_WORDS[4:])
    if not tokens:
        raise cursor.unexpected("a column or an expression")
    parsed = expression(cursor.text, tokens)
    alias_name = parsed.alias if isinstance(parsed, exp.Alias) else None
    inner = parsed.this if isinstance(parsed, exp.Alias) else parsed
    return Item(inner, alias_name, cursor.place_since(first))


def _from(cursor: Cursor) -> From:
    if cursor.word() == "(":
        raise SqlError(
            "Subqueries are not supported",
            cursor.place(),
            "Define the inner query first: CREATE STREAM … AS SELECT …, or CREATE TABLE …",
        )
    place = cursor.place()
    name = cursor.name("the name of a stream or table")
    alias = name
    if cursor.accept("AS") or (cursor.peek() is not None and cursor.word() not in (*_NOT_ALIASES, ",")):
        alias = cursor.name("an alias")
    if cursor.word() == ",":
        raise SqlError("FROM takes one stream or table", cursor.place(), "Use a join: a JOIN b ON a.x = b.x")
    return From(Named(name, place), alias)


def _join(cursor: Cursor) -> Join:
    first = cursor.position
    kind: Literal["INNER", "LEFT", "RIGHT", "FULL"] = "INNER"
    for word in ("LEFT", "RIGHT", "FULL"):
        if cursor.accept(word):
            kind = word
            cursor.accept("OUTER")
    if kind == "INNER":
        cursor.accept("INNER")
    cursor.expect("JOIN")
    source = _from(cursor)
    before = after = grace = None
    if cursor.accept("WITHIN"):
        before, after = _within(cursor)
    if cursor.accept("GRACE", "PERIOD"):
        grace = cursor.duration_ms()
    cursor.expect("ON")
    on = _expression(cursor, "a join condition", *_JOIN_WORDS)
    return Join(kind, source, on, cursor.place_since(first), before, after, grace)


def _within(cursor: Cursor) -> tuple[int, int]:
    """Parse 10 MINUTES, or (5 MINUTES, 10 MINUTES): how much earlier and later the other side may be."""
    if not cursor.accept("("):
        both = cursor.duration_ms()
        return both, both
    before = cursor.duration_ms()
    cursor.expect(",")
    after = cursor.duration_ms()
    cursor.expect(")")
    return before, after


def _window(cursor: Cursor) -> Window:
    place, kind = cursor.place(), cursor.word()
    if kind not in ("TUMBLING", "HOPPING", "SESSION"):
        raise cursor.unexpected("TUMBLING", "HOPPING", "SESSION")
    cursor.take()
    cursor.expect("(")
    found: dict[str, int] = {}
    if kind == "SESSION":
        found["SIZE"] = cursor.duration_ms()
        cursor.accept(",")
    while cursor.word() != ")":
        part = _part_of_window(cursor)
        found[part] = cursor.duration_ms()
        if not cursor.accept(","):
            break
    cursor.expect(")")
    if "SIZE" not in found or (kind == "HOPPING") != ("ADVANCE" in found):
        example = {
            "TUMBLING": "TUMBLING (SIZE 1 MINUTE)",
            "HOPPING": "HOPPING (SIZE 1 MINUTE, ADVANCE BY 10 SECONDS)",
        }[kind]
        raise SqlError(f"Invalid window: write {example}", place)
    return Window(
        kind,  # type: ignore[arg-type]
        found["SIZE"],
        found.get("ADVANCE"),
        found.get("GRACE"),
        found.get("RETENTION"),
    )


def _part_of_window(cursor: Cursor) -> str:
    for words in (("SIZE",), ("ADVANCE", "BY"), ("GRACE", "PERIOD"), ("RETENTION",)):
        if cursor.accept(*words):
            return words[0]
    raise cursor.unexpected("SIZE", "ADVANCE BY", "GRACE PERIOD", "RETENTION")


def _expression(cursor: Cursor, what: str, *stops: str) -> exp.Expression:
    tokens = cursor.until(*_CLAUSES, *stops)
    return _parsed(cursor, tokens, what)


def _parsed(cursor: Cursor, tokens: list[Token], what: str) -> exp.Expression:
    if not tokens:
        raise cursor.unexpected(what)
    parsed = expression(cursor.text, tokens)
    if isinstance(parsed, exp.Alias):
        place = Place(cursor.text, tokens[0].start, tokens[-1].end + 1)
        raise SqlError("An alias is not allowed here", place)
    return parsed


def _expressions(cursor: Cursor) -> tuple[exp.Expression, ...]:
    """Parse comma-separated expressions, optionally in parentheses."""
    found = []
    while True:
        found.append(_parsed(cursor, cursor.until(",", *_CLAUSES), "a column"))
        if not cursor.accept(","):
            break
    if len(found) == 1 and isinstance(found[0], exp.Tuple):
        return tuple(found[0].expressions)
    return tuple(item.this if isinstance(item, exp.Paren) else item for item in found)
