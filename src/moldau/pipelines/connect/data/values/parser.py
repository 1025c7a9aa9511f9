"""Parse text to a value with schema: numbers of the least width, booleans, dates, lists, maps, else strings.

The text is divided at delimiters that no backslash escapes. A list or map that is not well-formed is a
string.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.date_format import DateFormat
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.headers import NULL, SchemaAndValue
from moldau.pipelines.connect.data.numbers import float32, parse_decimal
from moldau.pipelines.connect.data.schema import (
    BOOLEAN,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Schema,
    Type,
    array,
    map_of,
)
from moldau.pipelines.connect.data.values.conversion import convert_to
from moldau.pipelines.connect.data.values.text import DATE_PATTERN, TIME_PATTERN, TIMESTAMP_PATTERN

_LITERALS: dict[str, SchemaAndValue | None] = {
    "null": None,
    "true": SchemaAndValue(BOOLEAN, True),
    "false": SchemaAndValue(BOOLEAN, False),
}
_DELIMITERS = frozenset(':,{}[]"')
#: Dates and times by the number of their characters.
_TEMPORAL = {
    13: (logical.TIME, DateFormat(TIME_PATTERN)),
    24: (logical.TIMESTAMP, DateFormat(TIMESTAMP_PATTERN)),
    10: (logical.DATE, DateFormat(DATE_PATTERN)),
}
_INTEGERS = ((7, INT8), (15, INT16), (31, INT32), (63, INT64))
#: Numbers, narrowest first: a list of several types has the widest of them.
_WIDTHS = [Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64]


def parse_string(text: str) -> SchemaAndValue:
    """Return the value of a text; the text `null` is no value."""
    if not text:
        return SchemaAndValue(STRING, text)
    return _Parser(_Tokens(text)).parse(embedded=False) or NULL


class _Tokens:
    """The text, divided at delimiters, with one token of look-ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.previous: str | None = None
        self._ahead: str | None = None

    def mark(self) -> int:
        return self.position - len(self._ahead or "")

    def rewind(self, position: int) -> None:
        self.position, self._ahead, self.previous = position, None, None

    def has_next(self) -> bool:
        return self._ahead is not None or self.position < len(self.text)

    def next(self) -> str:
        token, self._ahead = self._ahead, None
        self.previous = self._read() if token is None else token
        return self.previous

    def take(self, count: int) -> str | None:
        """Return the text of the next tokens, or None if there are not as many."""
        start = self.mark()
        for _ in range(count):
            if not self.has_next():
                self.rewind(start)
                return None
            self.next()
        return self.text[start : self.position]

    def consume(self, expected: str) -> bool:
        """Consume the next token if it is this one; blanks around it do not count."""
        if self._ahead is None:
            if not self.has_next():
                return False
            self._ahead = self._read()
        while not self._ahead.strip() and self.position < len(self.text):
            self._ahead = self._read()
        if self._ahead.strip() != expected:
            return False
        self._ahead = None
        return True

    def _read(self) -> str:
        text, start, escaped = self.text, self.position, False
        while self.position < len(text):
            char = text[self.position]
            if char in _DELIMITERS and not escaped:
                if start == self.position:
                    self.position += 1
                break
            escaped = char == "\\" and not escaped
            self.position += 1
        return text[start : self.position]


class _Parser:
    def __init__(self, tokens: _Tokens) -> None:
        self._tokens = tokens

    def parse(self, *, embedded: bool) -> SchemaAndValue | None:
        tokens = self._tokens
        if not tokens.has_next():
            return None
        if embedded and tokens.consume('"'):
            return self._quoted()
        for literal, value in _LITERALS.items():
            if self._is_literal(literal, embedded):
                return value
        start = tokens.mark()
        try:
            if tokens.consume("["):
                return self._array()
            if tokens.consume("{"):
                return self._map()
        except DataError:
            tokens.rewind(start)
        token = tokens.next()
        return self._scalar(token.strip(), embedded) if token.strip() else SchemaAndValue(STRING, token)

    def _is_literal(self, literal: str, embedded: bool) -> bool:
        start = self._tokens.mark()
        if self._tokens.consume(literal) and (embedded or not self._tokens.has_next()):
            return True
        self._tokens.rewind(start)
        return False

    def _scalar(self, token: str, embedded: bool) -> SchemaAndValue:
        if token[0].isdecimal() and (temporal := self._temporal_of_tokens(token)) is not None:
            return temporal
        if token[0].isdecimal() or token[0] in "+-":
            try:
                return _number(parse_decimal(token))
            except ValueError:
                pass
        if embedded:
            raise DataError("Failed to parse embedded value")
        return SchemaAndValue(STRING, self._tokens.text)

    def _temporal_of_tokens(self, token: str) -> SchemaAndValue | None:
        """Times have colons, which divide them into five tokens."""
        start = self._tokens.mark()
        if (rest := self._tokens.take(4)) is not None and (found := _temporal(token + rest)) is not None:
            return found
        self._tokens.rewind(start)
        return _temporal(token)

    def _quoted(self) -> SchemaAndValue:
        content = ""
        while self._tokens.has_next() and not self._tokens.consume('"'):
            content += self._tokens.next()
        return _temporal(content) or SchemaAndValue(STRING, content)

    def _array(self) -> SchemaAndValue:
        tokens, common = self._tokens, _CommonSchema()
        values: list[Any] = []
        while tokens.has_next():
            if tokens.consume("]"):
                return _typed_array(common.schema, values)
            if tokens.consume(","):
                raise DataError(f"Unable to parse an empty array element: {tokens.text}")
            element = self.parse(embedded=True)
            common.merge(element)
            values.append(element.value if element else None)
            position = tokens.mark()
            if tokens.consume("]"):
                tokens.rewind(position)
            elif not tokens.consume(","):
                raise DataError("Array elements missing ',' delimiter")
        missing = "element after ','" if tokens.previous == "," else "terminating ']'"
        raise DataError(f"Array is missing {missing}: {tokens.text}")

    def _map(self) -> SchemaAndValue:
        tokens, keys, values = self._tokens, _CommonSchema(), _CommonSchema()
        entries: dict[Any, Any] = {}
        while tokens.has_next():
            if tokens.consume("}"):
                return _typed_map(keys.schema, values.schema, entries)
            if tokens.consume(","):
                raise DataError(f"Unable to parse a map entry with no key or value: {tokens.text}")
            key = self.parse(embedded=True)
            if key is None or key.value is None:
                raise DataError(f"Map entry may not have a null key: {tokens.text}")
            if not tokens.consume(":"):
                raise DataError(f"Map entry is missing ':' at {tokens.position} in {tokens.text}")
            value = self.parse(embedded=True)
            entries[_hashable(key.value)] = value.value if value else None
            tokens.consume(",")
            keys.merge(key)
            values.merge(value)
        missing = "element after ','" if tokens.previous == "," else "terminating '}'"
        raise DataError(f"Map is missing {missing}: {tokens.text}")


def _hashable(key: Any) -> Any:
    """A list or map as key: Python's dict cannot have it, so the text remains a string."""
    if isinstance(key, (list, dict)):
        raise DataError("Lists and maps cannot be keys of a map")
    return key


class _CommonSchema:
    """The schema that all merged values can be converted to; None if there is none."""

    def __init__(self) -> None:
        self.schema: Schema | None = None
        self._compatible = True

    def merge(self, latest: SchemaAndValue | None) -> None:
        if latest is None or latest.schema is None or not self._compatible:
            return
        self.schema = latest.schema if self.schema is None else _merged(self.schema, latest.schema)
        self._compatible = self.schema is not None


def _merged(previous: Schema, new: Schema) -> Schema | None:
    if previous.type is new.type:
        return new if not previous.optional else previous
    if previous.type in _WIDTHS and new.type in _WIDTHS:
        return max(previous, new, key=lambda schema: _WIDTHS.index(schema.type))
    return None


def _typed_array(element: Schema | None, values: list[Any]) -> SchemaAndValue:
    if element is None:
        return SchemaAndValue(Schema(Type.ARRAY), values)
    return SchemaAndValue(array(element), [convert_to(element, value) for value in values])


def _typed_map(keys: Schema | None, values: Schema | None, entries: dict[Any, Any]) -> SchemaAndValue:
    if keys is None:
        return SchemaAndValue(Schema(Type.MAP), entries)
    if values is None:
        schema = Schema(Type.MAP, key_schema=keys)
        return SchemaAndValue(schema, {convert_to(keys, key): value for key, value in entries.items()})
    typed = {convert_to(keys, key): convert_to(values, value) for key, value in entries.items()}
    return SchemaAndValue(map_of(keys, values), typed)


def _number(value: Decimal) -> SchemaAndValue:
    if value.adjusted() <= 18 and value == value.to_integral_value():
        number = int(value)
        for bits, schema in _INTEGERS:
            if -(1 << bits) <= number < 1 << bits:
                return SchemaAndValue(schema, number)
    scale = logical.scale_of(value)
    single, double = float32(float(value)), float(value)
    if scale != 0 and abs(single) != float("inf"):
        return SchemaAndValue(FLOAT32, single)
    if scale != 0 and abs(double) != float("inf"):
        return SchemaAndValue(FLOAT64, double)
    return SchemaAndValue(logical.decimal_schema(scale), value)


def _temporal(token: str) -> SchemaAndValue | None:
    unescaped = token.replace("\\:", ":")
    if len(unescaped) not in _TEMPORAL:
        return None
    schema, pattern = _TEMPORAL[len(unescaped)]
    try:
        return SchemaAndValue(schema, pattern.parse(unescaped))
    except ValueError:
        return None
