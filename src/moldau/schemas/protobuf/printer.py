"""The text of a file, as Confluent's registry prints it: the same elements give the same bytes.

The order of the sections is fixed (messages before enums, `reserved` first in a message), comments and weak
imports are gone, and a declaration without content is one line. The text is stored, compared and hashed, so
its quirks are part of the format: defaults of `bytes` are unquoted, and blank lines in a nested message are
indented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from moldau.schemas.protobuf.elements import (
    MAX_FIELD_NUMBER,
    SCALARS,
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    Group,
    Literal,
    Message,
    OneOf,
    Option,
    OptionValue,
    ProtoFile,
    Range,
    Rpc,
    Service,
    Type,
    messages,
)

_T = TypeVar("_T")

#: Custom options that `ignore_extensions` keeps.
_KEPT_OPTIONS = "confluent."
_ESCAPES = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        "'": "\\'",
        '"': '\\"',
    }
)


def print_file(file: ProtoFile, *, ignore_extensions: bool = False) -> str:
    """Return the text of a file, if wanted without extensions and custom options."""
    return "".join(line + "\n" for line in _Printer(ignore_extensions).file(file))


def default_value(type_name: str, text: str) -> OptionValue:
    """Return the default value of a field as the value of an option."""
    if type_name == "string":
        return text
    return Literal(text, is_number=type_name in SCALARS and type_name != "bool")


def _indented(lines: Iterable[str]) -> list[str]:
    return ["  " + line for line in lines]


def _declaration(head: str, *sections: list[str]) -> list[str]:
    """Print a declaration with its sections in braces, separated by blank lines."""
    lines: list[str] = []
    for section in filter(None, sections):
        if lines:
            lines.append("")
        lines += _indented(section)
    return [head + " {", *lines, "}"] if lines else [head + " {}"]


def _all(printed: Callable[[_T], list[str]], elements: Iterable[_T]) -> list[str]:
    return [line for element in elements for line in printed(element)]


class _Printer:
    """Prints elements as lists of lines."""

    def __init__(self, ignore_extensions: bool) -> None:
        self._ignore_extensions = ignore_extensions

    def file(self, file: ProtoFile) -> list[str]:
        lines = []
        if file.syntax is not None:
            lines.append(f'syntax = "{file.syntax}";')
        if file.edition is not None:
            lines.append(f'edition = "{file.edition}";')
        if file.package is not None:
            lines.append(f"package {file.package};")
        imports = [f'import "{path}";' for path in file.imports]
        imports += [f'import public "{path}";' for path in file.public_imports]
        sections = (
            imports,
            self._options(file.options),
            self._types(file.types),
            self._extends(file.extends),
            _all(self._service, file.services),
        )
        for section in filter(None, sections):
            lines += ["", *section]
        return lines

    def _types(self, types: tuple[Type, ...]) -> list[str]:
        enums = (element for element in types if isinstance(element, Enum))
        return _all(self._message, messages(types)) + _all(self._enum, enums)

    def _message(self, message: Message) -> list[str]:
        extensions = () if self._ignore_extensions else message.extensions
        return _declaration(
            f"message {message.name}",
            [_reserved(values) for values in message.reserved],
            self._options(message.options),
            _all(self._field, message.fields),
            _all(self._oneof, message.oneofs),
            _all(self._group, message.groups),
            _all(self._extensions, extensions),
            self._extends(message.extends),
            self._types(message.types),
        )

    def _oneof(self, oneof: OneOf) -> list[str]:
        fields = _all(self._field, oneof.fields)
        return _declaration(
            f"oneof {oneof.name}", self._options(oneof.options), fields, _all(self._group, oneof.groups)
        )

    def _group(self, group: Group) -> list[str]:
        label = f"{group.label} " if group.label else ""
        return _declaration(f"{label}group {group.name} = {group.number}", _all(self._field, group.fields))

    def _extends(self, extends: tuple[Extend, ...]) -> list[str]:
        return [] if self._ignore_extensions else _all(self._extend, extends)

    def _extend(self, extend: Extend) -> list[str]:
        return _declaration(f"extend {extend.name}", _all(self._field, extend.fields))

    def _field(self, field: Field) -> list[str]:
        options = [*field.options]
        if field.default is not None:
            options.append(Option("default", default_value(field.type, field.default)))
        if field.json_name is not None:
            options.append(Option("json_name", field.json_name))
        label = f"{field.label} " if field.label else ""
        return self._with_options(f"{label}{field.type} {field.name} = {field.number}", options)

    def _extensions(self, extensions: Extensions) -> list[str]:
        return self._with_options(f"extensions {_values(extensions.values)}", extensions.options)

    def _enum(self, enum: Enum) -> list[str]:
        reserved = [_reserved(values) for values in enum.reserved]
        return _declaration(
            f"enum {enum.name}", reserved + self._options(enum.options) + _all(self._constant, enum.constants)
        )

    def _constant(self, constant: Constant) -> list[str]:
        return self._with_options(f"{constant.name} = {constant.number}", constant.options)

    def _service(self, service: Service) -> list[str]:
        return _declaration(
            f"service {service.name}", self._options(service.options), _all(self._rpc, service.rpcs)
        )

    def _rpc(self, rpc: Rpc) -> list[str]:
        request = ("stream " if rpc.request_streaming else "") + rpc.request
        response = ("stream " if rpc.response_streaming else "") + rpc.response
        head = f"rpc {rpc.name} ({request}) returns ({response})"
        options = self._options(rpc.options)
        return [head + " {", *_indented(options), "};"] if options else [head + ";"]

    def _kept(self, options: Iterable[Option]) -> list[Option]:
        if not self._ignore_extensions:
            return [*options]
        return [option for option in options if not option.is_custom or option.name.startswith(_KEPT_OPTIONS)]

    def _options(self, options: Iterable[Option]) -> list[str]:
        return [line for option in self._kept(options) for line in f"option {_option(option)};".split("\n")]

    def _with_options(self, text: str, options: Iterable[Option]) -> list[str]:
        kept: list[OptionValue] = [*self._kept(options)]
        return f"{text} {_bracketed(kept)};".split("\n") if kept else [text + ";"]


def _reserved(values: Iterable[int | Range | str]) -> str:
    return f"reserved {_values(values)};"


def _values(values: Iterable[int | Range | str]) -> str:
    return ", ".join(map(_range_or_name, values))


def _range_or_name(value: int | Range | str) -> str:
    if isinstance(value, Range):
        return f"{value.first} to {value.last if value.last < MAX_FIELD_NUMBER else 'max'}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _option(option: Option) -> str:
    name = f"({option.name})" if option.is_custom else option.name
    if isinstance(option.value, Option):
        return f"{name}.{_option(option.value)}"
    if isinstance(option.value, list):
        return f"{name} = {_bracketed(option.value)}"
    return f"{name} = {_value(option.value)}"


def _value(value: OptionValue) -> str:
    """Print a value inside of a list or map, or an option of a list of options."""
    if isinstance(value, Literal):
        return value.text
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if isinstance(value, Option):
        return _option(value)
    if isinstance(value, dict):
        return _lines("{", [f"{key}: {_value(item)}" for key, item in value.items()], "}")
    return _lines("[", [_value(item) for item in value], "]")


def _bracketed(values: list[OptionValue]) -> str:
    texts = [_value(value) for value in values]
    return f"[{texts[0]}]" if len(texts) == 1 else _lines("[", texts, "]")


def _lines(opening: str, texts: list[str], closing: str) -> str:
    body = ",\n".join(texts).split("\n") if texts else []
    return "\n".join([opening, *_indented(body), closing])
