"""Filters of records: text in key, value or headers, and expressions.

    value.amount > 100 and headers.source == "shop"
    key startswith "order-" and not (value.status in "paid,sent")
    partition == 3 and value.items[0].name matches "^Tea"

Operands are `key`, `value`, `headers`, `partition`, `offset`, `timestamp`, `size` with fields (`.name`,
`["name"]`, `[0]`), text in quotes, numbers, true, false and null. Operators are `==`, `!=`, `<`, `<=`, `>`,
`>=`, `contains`, `startswith`, `endswith`, `matches` (RE2), `in` (a list in text, separated by commas),
`and`, `or`, `not`. A comparison with a field that does not exist, or of another type, is false.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from moldau.base.re2_patterns import InvalidPatternError, compile_pattern
from moldau.console.web.forms import InvalidField

MAX_LENGTH: Final = 2000
_MAX_DEPTH: Final = 40
_ROOTS: Final = ("key", "value", "headers", "partition", "offset", "timestamp", "size")
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<number>-?\d+(?:\.\d+)?)|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<operator>==|!=|<=|>=|=|<|>|\(|\)|\[|\]|\.)|(?P<word>[A-Za-z_][\w\-]*))"""
)
_WORDS: Final = {"contains", "startswith", "endswith", "matches", "in"}
_MISSING: Final = object()

#: What an expression sees of a record: the roots above.
Fields = Mapping[str, Any]
Predicate = Callable[[Fields], Any]


class _Token(NamedTuple):
    kind: str
    text: str


def compile_expression(text: str) -> Predicate:
    """Return the predicate of an expression; `InvalidField` says what is wrong with it."""
    if len(text) > MAX_LENGTH:
        raise InvalidField(f"The expression is longer than {MAX_LENGTH} characters.")
    parser = _Parser(_tokens(text))
    predicate = parser.disjunction(0)
    parser.expect_end()
    return lambda fields: _truth(predicate(fields))


def _tokens(text: str) -> list[_Token]:
    found, position = [], 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise InvalidField(f"The expression cannot be read at {text[position:].strip()[:20]!r}.")
        found.append(_Token(match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return found


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def expect_end(self) -> None:
        if self._next < len(self._tokens):
            raise InvalidField(f"Unexpected {self._tokens[self._next].text!r} in the expression.")

    def disjunction(self, depth: int) -> Predicate:
        if depth > _MAX_DEPTH:
            raise InvalidField("The expression is nested too deeply.")
        parts = [self._conjunction(depth + 1)]
        while self._accept("or"):
            parts.append(self._conjunction(depth + 1))
        return parts[0] if len(parts) == 1 else lambda fields: any(_truth(each(fields)) for each in parts)

    def _conjunction(self, depth: int) -> Predicate:
        parts = [self._negation(depth + 1)]
        while self._accept("and"):
            parts.append(self._negation(depth + 1))
        return parts[0] if len(parts) == 1 else lambda fields: all(_truth(each(fields)) for each in parts)

    def _negation(self, depth: int) -> Predicate:
        negative = False
        while self._accept("not"):
            negative = not negative
        if self._accept("("):
            inner = self.disjunction(depth + 1)
            self._require(")")
        else:
            inner = self._comparison()
        return (lambda fields: not _truth(inner(fields))) if negative else inner

    def _comparison(self) -> Predicate:
        left = self._operand()
        operator = self._peek()
        if operator is None or operator.text not in {*_COMPARISONS, *_WORDS}:
            return left
        self._next += 1
        if operator.text == "matches":
            return self._matches(left)
        right = self._operand()
        compare = _COMPARISONS[operator.text]

        def predicate(fields: Fields) -> bool:
            one, other = left(fields), right(fields)
            if one is _MISSING or other is _MISSING:
                return False
            try:
                return bool(compare(one, other))
            except TypeError:
                return False

        return predicate

    def _matches(self, left: Predicate) -> Predicate:
        token = self._peek()
        if token is None or token.kind != "text":
            raise InvalidField("matches needs a regular expression in quotes.")
        self._next += 1
        try:
            pattern = compile_pattern(f"(?s:.*)(?:{_unquoted(token.text)})(?s:.*)")
        except InvalidPatternError as error:
            raise InvalidField(f"{token.text} is not a regular expression: {error}") from None

        def predicate(fields: Fields) -> bool:
            value = left(fields)
            return value is not _MISSING and pattern.fullmatch(_text(value)) is not None

        return predicate

    def _operand(self) -> Predicate:
        token = self._peek()
        if token is None:
            raise InvalidField("The expression ends too early.")
        self._next += 1
        if token.kind == "number":
            number = float(token.text) if "." in token.text else int(token.text)
            return lambda fields: number
        if token.kind == "text":
            text = _unquoted(token.text)
            return lambda fields: text
        constants: dict[str, Any] = {"true": True, "false": False, "null": None}
        if token.text in constants:
            constant = constants[token.text]
            return lambda fields: constant
        if token.text in _ROOTS:
            return self._path(token.text)
        raise InvalidField(f"{token.text!r} is not known; the fields of a record are {', '.join(_ROOTS)}.")

    def _path(self, root: str) -> Predicate:
        steps: list[str | int] = []
        while (token := self._peek()) is not None and token.text in (".", "["):
            self._next += 1
            step = self._peek()
            if step is None:
                raise InvalidField("The expression ends too early.")
            self._next += 1
            if token.text == ".":
                if step.kind != "word":
                    raise InvalidField(f"{step.text!r} is not the name of a field.")
                steps.append(step.text)
                continue
            if step.kind != "text" and not step.text.isdigit():
                raise InvalidField(
                    'Write a field as ["name"], and an element as [0], which is the first one.'
                )
            steps.append(_unquoted(step.text) if step.kind == "text" else int(step.text))
            self._require("]")
        return lambda fields: _walk(fields.get(root, _MISSING), steps)

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _accept(self, text: str) -> bool:
        token = self._peek()
        if token is None or token.text != text or token.kind == "text":
            return False
        self._next += 1
        return True

    def _require(self, text: str) -> None:
        if not self._accept(text):
            raise InvalidField(f"The expression lacks {text!r}.")


def _walk(value: Any, steps: list[str | int]) -> Any:
    for step in steps:
        if isinstance(value, dict):
            value = value.get(str(step), _MISSING)
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step] if step < len(value) else _MISSING
        else:
            return _MISSING
    return value


def _truth(value: Any) -> bool:
    return value is not _MISSING and bool(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def _equal(one: Any, other: Any) -> bool:
    """A number equals the same number as text, because keys and headers are text."""
    if isinstance(one, str) != isinstance(other, str) and not isinstance(one, bool | None):
        return _text(one) == _text(other)
    return bool(one == other)


_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": _equal,
    "=": _equal,
    "!=": lambda one, other: not _equal(one, other),
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "contains": lambda one, other: other in one if isinstance(one, list) else _text(other) in _text(one),
    "startswith": lambda one, other: _text(one).startswith(_text(other)),
    "endswith": lambda one, other: _text(one).endswith(_text(other)),
    "in": lambda one, other: _text(one) in [each.strip() for each in _text(other).split(",")],
}
