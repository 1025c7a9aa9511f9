"""Tokens of a .proto text: words, strings and symbols, without white space and comments.

A word may contain dots and dashes, as the parser of Confluent's registry reads them: numbers, names and type
names are words. Errors carry the line and column in the form that registry answers.
"""

from __future__ import annotations

import re
from string import ascii_letters
from typing import NoReturn

from moldau.schemas.schema import InvalidSchema

MAX_CHARACTERS = 1 << 20

_TOKEN = re.compile(
    r"""[ \t\r\n]+ | //[^\n]* | /\*.*?\*/
    | (?P<token> [A-Za-z0-9_.\-]+ | "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | . )""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\([xX][0-9a-fA-F]{0,2}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_WORD_CHARACTERS = frozenset(ascii_letters + "0123456789_.-")
_MIN_INT, _MAX_INT = -(1 << 31), (1 << 31) - 1


class Reader:
    """The tokens of a text and a position in them."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_CHARACTERS:
            raise InvalidSchema(f"Could not parse Protobuf - more than {MAX_CHARACTERS} characters")
        self._text = text
        self._starts: list[int] = []
        self._tokens: list[str] = []
        for match in _TOKEN.finditer(text.removeprefix("\ufeff")):
            token = match["token"]
            if token is not None:
                self._starts.append(match.start())
                self._tokens.append(token)
                if token in "\"'/":
                    self._unterminated(token, match.start())
        # The end is an empty token.
        self._starts.append(len(text))
        self._tokens.append("")
        self._next = 0

    def _unterminated(self, token: str, start: int) -> NoReturn:
        if token != "/":
            raise self.error("unterminated string", start + 1)
        comment = self._text.startswith("/*", start)
        raise self.error("unterminated comment" if comment else "unexpected '/'", start + 1)

    @property
    def exhausted(self) -> bool:
        return not self._tokens[self._next]

    @property
    def position(self) -> int:
        """The offset of the next token in the text."""
        return self._starts[self._next]

    def location(self, position: int) -> str:
        line_start = self._text.rfind("\n", 0, position) + 1
        return f":{self._text.count(chr(10), 0, position) + 1}:{position - line_start + 1}"

    def error(self, message: str, position: int | None = None) -> InvalidSchema:
        """Return the error to raise; without a position it is located at the next token."""
        location = self.location(self.position if position is None else position)
        return InvalidSchema(f"Could not parse Protobuf - Syntax error in {location}: {message}")

    def peek(self) -> str:
        token = self._tokens[self._next]
        if not token:
            raise self.error("unexpected end of file")
        return token

    def next(self) -> str:
        token = self.peek()
        self._next += 1
        return token

    def take(self, symbol: str) -> bool:
        """Consume the symbol if it is next."""
        if self.peek() != symbol:
            return False
        self._next += 1
        return True

    def require(self, symbol: str) -> None:
        token = self.peek()
        if token != symbol:
            raise self.error(f"expected '{symbol}' but was '{token[0]}'", self.position + 1)
        self._next += 1

    def word(self, *, is_identifier: bool = False) -> str:
        """Read a word; an identifier does not start with a digit."""
        token = self.peek()
        if token[0] not in _WORD_CHARACTERS:
            raise self.error("expected a word")
        if is_identifier and token[0].isdigit():
            raise self.error("field and constant names cannot start with a digit")
        self._next += 1
        return token

    def name(self, *, is_identifier: bool = False) -> str:
        """Read a word that may be in parentheses or brackets."""
        closing = {"(": ")", "[": "]"}.get(self.peek())
        if closing is None:
            return self.word(is_identifier=is_identifier)
        self.next()
        word = self.word(is_identifier=is_identifier)
        if not self.take(closing):
            raise self.error(f"expected '{closing}'")
        return word

    def is_string(self) -> bool:
        return self.peek()[0] in "\"'"

    def string(self) -> str:
        """Read a string; adjacent strings are one."""
        parts = []
        while not self.exhausted and self.is_string():
            parts.append(_ESCAPE.sub(self._unescape, self.next()[1:-1]))
        if not parts:
            raise self.error("expected quoted string")
        return "".join(parts)

    def _unescape(self, match: re.Match[str]) -> str:
        escape = match[1]
        if escape[0] in "xX":
            if len(escape) == 1:
                raise self.error("expected a digit after \\x or \\X")
            return chr(int(escape[1:], 16))
        if escape[0] in "01234567":
            return chr(int(escape, 8))
        return _ESCAPED.get(escape, escape)

    def integer(self) -> int:
        """Read a signed number of 32 bits, decimal or hexadecimal."""
        position = self.position
        word = self.word()
        if word.isdecimal() and len(word) < 10:
            return int(word)
        is_hexadecimal = word[:2] in ("0x", "0X")
        digits = word[2:] if is_hexadecimal else word
        if re.fullmatch(r"-?[0-9a-fA-F]{1,11}" if is_hexadecimal else r"-?[0-9]{1,20}", digits):
            number = int(digits, 16 if is_hexadecimal else 10)
            if _MIN_INT <= number <= _MAX_INT:
                return number
        raise self.error(f"expected an integer but was {digits}", position + len(word))
