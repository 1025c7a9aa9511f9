"""Types, as ksqlDB writes them."""

from __future__ import annotations

from moldau.pipelines.sql.parse.cursor import Cursor
from moldau.pipelines.sql.parse.dialect import tokenize
from moldau.pipelines.sql.types import NAMES, SqlType


def parse_type(text: str) -> SqlType:
    """A type as `str` writes it."""
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
        inner.append(read_type(cursor))
        if not cursor.accept(","):
            break
    cursor.expect(">")
    return SqlType(word, tuple(inner), tuple(fields))
