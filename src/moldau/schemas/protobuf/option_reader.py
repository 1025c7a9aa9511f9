"""Options in a .proto text: names with paths, and values up to whole messages."""

from __future__ import annotations

from moldau.schemas.protobuf.elements import Literal, Option, OptionValue
from moldau.schemas.protobuf.reader import Reader

#: Values in values, and fields in the path of a name.
MAX_NESTING = 32
#: Options of one declaration; merging them is quadratic.
MAX_OPTIONS = 1_000


class OptionReader:
    """Reads options from the tokens of a parser."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._depth = 0

    def bracketed(self) -> tuple[Option, ...]:
        """Read the options between brackets after a field or constant, if there are any."""
        reader = self._reader
        if not reader.take("["):
            return ()
        options = []
        while True:
            options.append(self.option("="))
            if reader.take("]"):
                return tuple(options)
            if len(options) > MAX_OPTIONS:
                raise reader.error(f"more than {MAX_OPTIONS} options")
            if not reader.take(","):
                raise reader.error("Expected ',' or ']")

    def option(self, separator: str) -> Option:
        """Read a name and a value: `=` separates them in declarations, `:` in the text of a message."""
        reader = self._reader
        opening = reader.peek()
        name = reader.name()
        path = self._path(separator)
        value = self._value()
        for part in reversed(path):
            is_custom = part.startswith("(")
            value = Option(part[1:-1] if is_custom else part, value, is_custom)
        return Option(f"[{name}]" if opening == "[" else name, value, opening == "(")

    def _path(self, separator: str) -> list[str]:
        """Read up to the value: the fields after the name, as `sub` and `(ext)` in `(name).sub.(ext) =`."""
        reader = self._reader
        path: list[str] = []
        while reader.peek() != separator:
            if separator == ":" and reader.peek() == "{":
                return path
            if reader.peek() == "(" and path:
                path.append(f"({reader.name()})")
            elif reader.peek()[0] == ".":
                path.extend(part for part in reader.word().split(".") if part)
                if not path and reader.peek() == "(":
                    path.append(f"({reader.name()})")
            else:
                raise reader.error(f"expected '{separator}' in option")
            if len(path) > MAX_NESTING:
                raise reader.error(f"more than {MAX_NESTING} nested options")
        reader.next()
        return path

    def _value(self) -> OptionValue:
        reader = self._reader
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise reader.error(f"more than {MAX_NESTING} nested options")
        token = reader.peek()
        value: OptionValue
        if token == "{":
            value = self._map()
        elif token == "[":
            value = self._list()
        elif reader.is_string():
            value = reader.string()
        else:
            value = Literal(reader.word(), token[0].isdigit() or token[0] == "-")
        self._depth -= 1
        return value

    def _map(self) -> dict[str, OptionValue]:
        """Read the text of a message; a field that occurs several times becomes a list."""
        reader = self._reader
        reader.require("{")
        values: dict[str, OptionValue] = {}
        while not reader.take("}"):
            option = self.option(":")
            if isinstance(option.value, Option):
                nested = values.setdefault(option.name, {})
                if isinstance(nested, dict):
                    nested[option.value.name] = option.value.value
            elif option.name not in values:
                values[option.name] = option.value
            else:
                values[option.name] = _joined(values[option.name], option.value)
            if not reader.take(","):
                reader.take(";")
        return values

    def _list(self) -> list[OptionValue]:
        reader = self._reader
        reader.require("[")
        values: list[OptionValue] = []
        while not reader.take("]"):
            values.append(self._value())
            if not reader.take(",") and reader.peek() != "]":
                raise reader.error("expected ',' or ']'")
        return values


def _joined(previous: OptionValue, value: OptionValue) -> list[OptionValue]:
    values: list[OptionValue] = previous if isinstance(previous, list) else [previous]
    values.extend(value if isinstance(value, list) else [value])
    return values
