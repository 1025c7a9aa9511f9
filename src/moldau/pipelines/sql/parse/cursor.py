"""A cursor over the tokens of a statement. Its errors name the place and the expected words."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from moldau.pipelines.sql.errors import Place, SqlError, suggestion
from moldau.pipelines.sql.parse.statements import Named

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_NOT_NAMES = (TokenType.STRING, TokenType.NUMBER)
#: Words that are names only in backticks.
_RESERVED = """
ALL AND AS BETWEEN BY CASE CAST CREATE CROSS DELETE DESCRIBE DISTINCT DROP ELSE EMIT END EXISTS EXPLAIN
FALSE FROM FULL GROUP HAVING IN INNER INSERT INTO IS JOIN LEFT LIKE LIMIT NOT NULL ON OR ORDER OUTER
PARTITION RIGHT SELECT THEN TRUE UNION VALUES WHEN WHERE WINDOW WITH WITHIN
"""
RESERVED = frozenset(_RESERVED.split())
_MILLISECONDS = {
    "MILLISECOND": 1,
    "SECOND": 1_000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
    "WEEK": 7 * 86_400_000,
}


class Cursor:
    """A position in the tokens of a statement."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self._tokens = list(tokens)
        self._next = 0

    @property
    def at_end(self) -> bool:
        return self._next >= len(self._tokens)

    def peek(self, ahead: int = 0) -> Token | None:
        index = self._next + ahead
        return self._tokens[index] if index < len(self._tokens) else None

    def word(self, ahead: int = 0) -> str:
        """Return the next token in upper case; "" for a string, a quoted name and the end."""
        token = self.peek(ahead)
        if token is None or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            return ""
        return token.text.upper()

    def place(self, ahead: int = 0) -> Place:
        token = self.peek(ahead)
        if token is None:
            end = self._tokens[-1].end + 1 if self._tokens else len(self.text)
            return Place(self.text, end, end)
        return Place(self.text, token.start, token.end + 1)

    def place_since(self, first: int) -> Place:
        last = self._tokens[max(self._next - 1, first)]
        return Place(self.text, self._tokens[first].start, last.end + 1)

    @property
    def position(self) -> int:
        return self._next

    def back_to(self, position: int) -> None:
        self._next = position

    def take(self) -> Token:
        token = self.peek()
        if token is None:
            raise SqlError("Unexpected end of the statement", self.place())
        self._next += 1
        return token

    def accept(self, *words: str) -> bool:
        """Consume these words if they are next. Return whether they were."""
        if all(self.word(ahead) == word for ahead, word in enumerate(words)):
            self._next += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.accept(word):
                raise self.unexpected(word)

    def unexpected(self, *wanted: str) -> SqlError:
        token = self.peek()
        found = "the end of the statement" if token is None else repr(token.text)
        hint = suggestion(token.text, wanted) if token is not None else None
        return SqlError(f"Expected {' or '.join(wanted)}, found {found}", self.place(), hint)

    def name(self, what: str) -> str:
        token = self.peek()
        if token is None or token.token_type in _NOT_NAMES:
            raise self.unexpected(what)
        if token.token_type is not TokenType.IDENTIFIER and not token.text.replace("_", "a").isalnum():
            raise self.unexpected(what)
        if token.token_type is not TokenType.IDENTIFIER and token.text.upper() in RESERVED:
            raise SqlError(
                f"Expected {what}, found the reserved word {token.text!r}",
                self.place(),
                f"Quote it with backticks to use it as a name: `{token.text}`",
            )
        return self.take().text

    def named(self, what: str) -> Named:
        """Consume a name, and return it with its place."""
        place = self.place()
        return Named(self.name(what), place)

    def string(self, what: str) -> str:
        token = self.peek()
        if token is None or token.token_type is not TokenType.STRING:
            raise self.unexpected(f"{what} in single quotes")
        return self.take().text

    def number(self, what: str) -> int:
        token = self.peek()
        if token is None or token.token_type is not TokenType.NUMBER or not token.text.isdigit():
            raise self.unexpected(what)
        return int(self.take().text)

    def duration_ms(self) -> int:
        """Consume a duration such as 10 SECONDS."""
        amount = self.number("a number, as in 10 SECONDS")
        unit = self.word().removesuffix("S")
        if unit not in _MILLISECONDS:
            raise self.unexpected(*(f"{name}S" for name in _MILLISECONDS))
        self.take()
        return amount * _MILLISECONDS[unit]

    def until(self, *stops: str) -> list[Token]:
        """Consume and return the tokens before the first of the given words outside parentheses, or to the
        end."""
        depth, first = 0, self._next
        while (token := self.peek()) is not None:
            if depth == 0 and (self.word() in stops or token.token_type in _CLOSING):
                break
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            depth += (self.word() == "CASE") - (self.word() == "END")
            self._next += 1
        return self._tokens[first : self._next]

    def rest(self) -> Cursor:
        """Consume the remaining tokens, and return a cursor over them."""
        tokens = self._tokens[self._next :]
        self._next = len(self._tokens)
        return Cursor(self.text, tokens)

    def end(self) -> None:
        if not self.at_end:
            raise self.unexpected("the end of the statement")
