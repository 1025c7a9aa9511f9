"""ksqlDB's dialect of SQL for sqlglot: tokens, and the parsing of expressions.

It differs from Spark's dialect in three ways. `->` accesses a field of a struct and `=>` creates a lambda;
both are rewritten to Spark's `.` and `->` without changing the length of the text, so that places remain
valid. A quote inside a string is doubled. The parser knows no functions: names and arguments stay as written,
and `compile.functions` translates them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from moldau.pipelines.sql.errors import Place, SqlError

_SPECIAL = ("CAST", "TRY_CAST", "EXTRACT", "TRIM")


class Ksql(Spark):
    """The dialect of expressions."""

    class Tokenizer(Spark.Tokenizer):
        QUOTES = ["'"]  # noqa: RUF012 - sqlglot reads these as class attributes
        IDENTIFIERS = ["`", '"']  # noqa: RUF012
        STRING_ESCAPES = ["'"]  # noqa: RUF012
        KEYWORDS = {**Spark.Tokenizer.KEYWORDS, "BYTES": TokenType.VARBINARY}  # noqa: RUF012

    class Parser(Spark.Parser):  # type: ignore[valid-type,misc]
        FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parse for name, parse in Spark.Parser.FUNCTION_PARSERS.items() if name in _SPECIAL
        }
        NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
            name: parse
            for name, parse in Spark.Parser.NO_PAREN_FUNCTION_PARSERS.items()
            if name != "TRANSFORM"
        }


class _Written(Spark):
    """The dialect in which expressions are passed to Spark."""

    class Generator(Spark.Generator):  # type: ignore[valid-type,misc]
        TYPE_MAPPING = {**Spark.Generator.TYPE_MAPPING, exp.DataType.Type.TIME: "TIME"}  # noqa: RUF012


class Words(Ksql):
    """A tokenizer in which every word is one token: GROUP BY is two, and no command consumes the
    statement."""

    class Tokenizer(Ksql.Tokenizer):
        KEYWORDS = {word: kind for word, kind in Ksql.Tokenizer.KEYWORDS.items() if " " not in word}  # noqa: RUF012
        COMMANDS = set()  # noqa: RUF012


def tokenize(text: str) -> list[Token]:
    try:
        return list(Words().tokenize(text))
    except TokenError as error:
        quote = _open_quote(text)
        place = Place(text, quote, quote + 1) if quote is not None else Place(text, len(text), len(text))
        raise SqlError("Unterminated quote or comment", place) from error


def _open_quote(text: str) -> int | None:
    """Return the position of the quote that is not closed."""
    inside: tuple[str, int] | None = None
    for index, character in enumerate(text):
        if inside is None and character in "'`\"":
            inside = (character, index)
        elif inside is not None and character == inside[0]:
            inside = None
    return inside[1] if inside else None


def split_statements(text: str) -> list[list[Token]]:
    """Return the tokens of each statement. Statements end with a semicolon, which is optional for the last
    one."""
    found: list[list[Token]] = [[]]
    for token in tokenize(text):
        if token.token_type is TokenType.SEMICOLON:
            found.append([])
        else:
            found[-1].append(token)
    return [tokens for tokens in found if tokens]


def is_complete(text: str) -> bool:
    """Whether a text ends with a semicolon outside strings and comments."""
    try:
        tokens = tokenize(text)
    except SqlError:
        return False
    return not tokens or tokens[-1].token_type is TokenType.SEMICOLON


def expression(text: str, tokens: Sequence[Token]) -> exp.Expression:
    """Parse some tokens of a text as an expression, and annotate its identifiers with their places."""
    start, end = tokens[0].start, tokens[-1].end + 1
    bit = list(text[start:end])
    for token in tokens:
        at = token.start - start
        if token.token_type is TokenType.ARROW:
            bit[at : at + 2] = " ."
        elif token.token_type is TokenType.FARROW:
            bit[at : at + 2] = "->"
    try:
        parsed = sqlglot.parse_one("".join(bit), read=Ksql)
    except ParseError as error:
        raise _not_parsed(error, text, start, end) from error
    if not isinstance(parsed, exp.Expression) or isinstance(parsed, exp.Query | exp.Command):
        raise SqlError("This is not an expression", Place(text, start, end))
    if parsed.find(exp.Query) is not None:
        raise SqlError(
            "Subqueries are not supported",
            Place(text, start, end),
            "Define the inner query first: CREATE STREAM … AS SELECT …, or CREATE TABLE …",
        )
    parsed.meta["place"] = Place(text, start, end)
    for identifier in parsed.find_all(exp.Identifier):
        if "start" in identifier.meta:
            identifier.meta["place"] = Place(
                text, start + identifier.meta["start"], start + identifier.meta["end"] + 1
            )
    return parsed


def _not_parsed(error: ParseError, text: str, start: int, end: int) -> SqlError:
    details = error.errors[0] if error.errors else {}
    description = str(details.get("description") or "not an expression").rstrip(".")
    bad = str(details.get("highlight") or "")
    context = str(details.get("start_context") or "")
    at = start + len(context) if bad else start
    place = Place(text, at, at + len(bad)) if bad and text[at : at + len(bad)] == bad else None
    return SqlError(f"Invalid expression: {description}", place or Place(text, start, end))


def place_of(node: exp.Expression) -> Place | None:
    """Return the place of an expression in the text."""
    whole = node.meta.get("place")
    if isinstance(whole, Place):
        return whole
    for identifier in node.find_all(exp.Identifier):
        place = identifier.meta.get("place")
        if isinstance(place, Place):
            return place
    return None


def spark_sql(node: exp.Expression) -> str:
    return node.sql(dialect=_Written, comments=False)


def quoted(name: str) -> str:
    """Quote a name for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"
