"""The parser of .proto texts.

It accepts what the parser of Confluent's registry (Wire) accepts, so that a text valid there is valid here,
and a text invalid there gets the same error: fields of proto2 need a label, groups contain fields only, and
declarations are not checked against each other. Editions are accepted in addition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

from moldau.schemas.protobuf.elements import (
    KEY_TYPES,
    MAX_FIELD_NUMBER,
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
    ProtoFile,
    Range,
    Reserved,
    Rpc,
    Service,
)
from moldau.schemas.protobuf.option_reader import OptionReader
from moldau.schemas.protobuf.reader import Reader
from moldau.schemas.schema import InvalidSchema

#: Messages in messages; protoc has a limit of 32.
MAX_NESTING = 32
MAX_PACKAGE_PARTS = 32
#: Parsed texts are cached up to this size, so that the cache is bounded.
_CACHED_CHARACTERS = 1 << 14

_LABELS = ("required", "optional", "repeated")
#: Written as options, but stored as attributes of a field.
_SPECIAL_OPTIONS = ("default", "json_name")
_T = TypeVar("_T")


def parse_file(text: str) -> ProtoFile:
    """Parse a text; raise `InvalidSchema` with the location of a syntax error."""
    return _parse_cached(text) if len(text) <= _CACHED_CHARACTERS else _Parser(text).file()


@lru_cache(maxsize=64)
def _parse_cached(text: str) -> ProtoFile:
    return _Parser(text).file()


def _of(kind: type[_T], declarations: list[Any]) -> tuple[_T, ...]:
    return tuple(declaration for declaration in declarations if isinstance(declaration, kind))


def _reserved_of(declarations: list[Any]) -> tuple[Reserved, ...]:
    return tuple(item for item in declarations if isinstance(item, tuple) and not isinstance(item, Option))


class _Import(tuple[str, str]):
    """The kind of an import ("", "public" or "weak") and its path."""


class _Parser:
    def __init__(self, text: str) -> None:
        self._reader = Reader(text)
        self._options = OptionReader(self._reader)
        self._syntax: str | None = None
        self._edition: str | None = None
        self._package: str | None = None
        self._depth = 0

    def file(self) -> ProtoFile:
        declarations: list[Any] = []
        defined: dict[tuple[str, str], int] = {}
        first = True
        while not self._reader.exhausted:
            position = self._reader.position
            declaration = self._file_declaration(first)
            first = False
            if isinstance(declaration, Message | Enum | Service):
                key = ("service" if isinstance(declaration, Service) else "type", declaration.name)
                if key in defined:
                    here, there = map(self._reader.location, (position, defined[key]))
                    duplicate = f"{declaration.name} ({here}) is already defined at {there}"
                    raise InvalidSchema(f"Could not parse Protobuf - {duplicate}")
                defined[key] = position
            declarations.append(declaration)
        imports = _of(_Import, declarations)
        return ProtoFile(
            syntax=self._syntax,
            edition=self._edition,
            package=self._package,
            imports=tuple(path for kind, path in imports if not kind),
            public_imports=tuple(path for kind, path in imports if kind == "public"),
            weak_imports=tuple(path for kind, path in imports if kind == "weak"),
            types=tuple(item for item in declarations if isinstance(item, Message | Enum)),
            services=_of(Service, declarations),
            extends=_of(Extend, declarations),
            options=_of(Option, declarations),
        )

    def _file_declaration(self, first: bool) -> Any:
        reader = self._reader
        if reader.take(";"):
            return None
        position = reader.position
        match label := reader.word():
            case "package":
                return self._read_package()
            case "import":
                return self._import()
            case "syntax" | "edition":
                return self._read_syntax(label, first, position)
            case "option":
                return self._option()
            case "reserved":
                return self._reserved()
            case "message":
                return self._message()
            case "enum":
                return self._enum()
            case "service":
                return self._service()
            case "extend":
                return self._extend()
        raise reader.error(f"unexpected label: {label}", position)

    def _read_package(self) -> None:
        self._package = self._reader.name()
        if self._package.count(".") >= MAX_PACKAGE_PARTS:
            raise self._reader.error(f"package of more than {MAX_PACKAGE_PARTS} parts")
        self._reader.require(";")

    def _import(self) -> _Import:
        reader = self._reader
        kind = "" if reader.is_string() else reader.word()
        if kind not in ("", "public", "weak"):
            raise reader.error("expected quoted string")
        path = reader.string().replace("\\", "/")
        reader.require(";")
        root = "/" if path.startswith("/") else ""
        return _Import((kind, root + "/".join(part for part in path.split("/") if part not in ("", "."))))

    def _read_syntax(self, label: str, first: bool, position: int) -> None:
        reader = self._reader
        if self._syntax is not None or self._edition is not None:
            raise reader.error(f"too many {label} definitions", position)
        reader.require("=")
        if not first:
            raise reader.error(f"'{label}' element must be the first declaration in a file", position)
        value = reader.string()
        if label == "edition":
            self._edition = value
        elif value in ("proto2", "proto3"):
            self._syntax = value
        else:
            raise reader.error(f"unexpected syntax: {value}", position)
        reader.require(";")

    def _option(self) -> Option:
        option = self._options.option("=")
        self._reader.require(";")
        return option

    def _body(self, declaration: Callable[[], _T]) -> Iterator[_T]:
        """Read the declarations between braces."""
        self._reader.require("{")
        while not self._reader.take("}"):
            yield declaration()

    def _message(self) -> Message:
        name = self._reader.name()
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._reader.error(f"more than {MAX_NESTING} nested messages")
        declarations = list(self._body(self._message_declaration))
        self._depth -= 1
        return Message(
            name=name,
            fields=_of(Field, declarations),
            oneofs=_of(OneOf, declarations),
            groups=_of(Group, declarations),
            types=tuple(item for item in declarations if isinstance(item, Message | Enum)),
            options=_of(Option, declarations),
            reserved=tuple(
                item for item in declarations if isinstance(item, tuple) and not isinstance(item, Option)
            ),
            extensions=_of(Extensions, declarations),
            extends=_of(Extend, declarations),
        )

    def _message_declaration(self) -> Any:
        reader = self._reader
        if reader.take(";"):
            return None
        position = reader.position
        match label := reader.word():
            case "option":
                return self._option()
            case "reserved":
                return self._reserved()
            case "message":
                return self._message()
            case "enum":
                return self._enum()
            case "extend":
                return self._extend()
            case "oneof":
                return self._oneof()
            case "extensions":
                return self._extensions()
        return self._labelled_field(label, position)

    def _labelled_field(self, word: str, position: int) -> Field | Group:
        reader = self._reader
        label = word if word in _LABELS else None
        if label == "required" and self._syntax == "proto3":
            raise reader.error("'required' label forbidden in proto3 field declarations", position)
        needs_label = self._syntax != "proto3" and self._edition is None
        if label is None and needs_label and (word != "map" or reader.peek() != "<"):
            raise reader.error(f"unexpected label: {word}", position)
        type_name = self._data_type(word if label is None else reader.word())
        if label is not None and type_name.startswith("map<"):
            raise reader.error("'map' type cannot have label", position)
        return self._group(label) if type_name == "group" else self._field(label, type_name)

    def _data_type(self, word: str) -> str:
        if word != "map":
            return word
        self._reader.require("<")
        key = self._reader.word()
        if key not in KEY_TYPES:
            raise InvalidSchema(f"map key must be non-byte, non-floating point scalar: {key}")
        self._reader.require(",")
        value = self._reader.word()
        self._reader.require(">")
        return f"map<{key}, {value}>"

    def _field(self, label: str | None, type_name: str) -> Field:
        reader = self._reader
        name = reader.name(is_identifier=True)
        reader.require("=")
        number = reader.integer()
        options = self._options.bracketed()
        reader.require(";")
        if not options:
            return Field(label, type_name, name, number)
        special = {
            option.name: _text(option) for option in options if option.name in ("default", "json_name")
        }
        return Field(
            label,
            type_name,
            name,
            number,
            tuple(option for option in options if option.name not in special),
            special.get("default"),
            special.get("json_name"),
        )

    def _group(self, label: str | None) -> Group:
        reader = self._reader
        name = reader.word()
        reader.require("=")
        number = reader.integer()
        return Group(label, name, number, tuple(self._body(self._group_field)))

    def _group_field(self) -> Field:
        position = self._reader.position
        field = self._labelled_field(self._reader.word(), position)
        if isinstance(field, Group):
            raise self._reader.error("expected field declaration", position)
        return field

    def _oneof(self) -> OneOf:
        name = self._reader.name()
        declarations = list(self._body(self._oneof_declaration))
        return OneOf(name, _of(Field, declarations), _of(Group, declarations), _of(Option, declarations))

    def _oneof_declaration(self) -> Field | Group | Option:
        match type_name := self._data_type(self._reader.word()):
            case "group":
                return self._group(None)
            case "option":
                return self._option()
        return self._field(None, type_name)

    def _extend(self) -> Extend:
        name = self._reader.name()
        return Extend(name, _of(Field, list(self._body(self._extend_declaration))))

    def _extend_declaration(self) -> Field | Group | Option | None:
        if self._reader.take(";"):
            return None
        position = self._reader.position
        label = self._reader.word()
        return self._option() if label == "option" else self._labelled_field(label, position)

    def _enum(self) -> Enum:
        name = self._reader.name()
        declarations = list(self._body(self._enum_declaration))
        return Enum(
            name=name,
            constants=_of(Constant, declarations),
            options=_of(Option, declarations),
            reserved=tuple(
                item for item in declarations if isinstance(item, tuple) and not isinstance(item, Option)
            ),
        )

    def _enum_declaration(self) -> Constant | Option | Reserved | None:
        reader = self._reader
        if reader.take(";"):
            return None
        match label := reader.word(is_identifier=True):
            case "option":
                return self._option()
            case "reserved":
                return self._reserved()
        reader.require("=")
        constant = Constant(label, reader.integer(), self._options.bracketed())
        reader.require(";")
        return constant

    def _reserved(self) -> Reserved:
        reader = self._reader
        values: list[int | Range | str] = []
        while True:
            values.append(reader.string() if reader.is_string() else self._range())
            if reader.take(";"):
                return tuple(values)
            if not reader.take(","):
                raise reader.error("expected ',' or ';'")

    def _range(self) -> int | Range:
        reader = self._reader
        position = reader.position
        first = reader.integer()
        if reader.peek() in (",", ";", "["):
            return first
        if reader.word() != "to":
            raise reader.error("expected ',', ';', or 'to'", position)
        if reader.take("max"):
            return Range(first, MAX_FIELD_NUMBER)
        return Range(first, reader.integer())

    def _extensions(self) -> Extensions:
        reader = self._reader
        values: list[int | Range] = []
        while True:
            values.append(self._range())
            if reader.peek() == "[":
                options = self._options.bracketed()
                reader.require(";")
                return Extensions(tuple(values), options)
            if reader.take(";"):
                return Extensions(tuple(values))
            if not reader.take(","):
                raise reader.error("expected ',' or ';'")

    def _service(self) -> Service:
        name = self._reader.name()
        declarations = list(self._body(lambda: self._service_declaration("rpc")))
        return Service(name, _of(Rpc, declarations), _of(Option, declarations))

    def _service_declaration(self, permitted: str) -> Rpc | Option | None:
        reader = self._reader
        if reader.take(";"):
            return None
        position = reader.position
        match label := reader.word():
            case "option":
                return self._option()
            case "rpc" if permitted == "rpc":
                return self._rpc()
        raise reader.error(f"unexpected label: {label}", position)

    def _rpc(self) -> Rpc:
        reader = self._reader
        position = reader.position
        name = reader.name()
        request, request_streaming = self._rpc_type()
        if reader.word() != "returns":
            raise reader.error("expected 'returns'", position)
        response, response_streaming = self._rpc_type()
        options: tuple[Option, ...] = ()
        if reader.peek() == "{":
            options = _of(Option, list(self._body(lambda: self._service_declaration("option"))))
        else:
            reader.require(";")
        return Rpc(name, request, response, request_streaming, response_streaming, options)

    def _rpc_type(self) -> tuple[str, bool]:
        reader = self._reader
        reader.require("(")
        word = reader.word()
        is_stream = word == "stream" and reader.peek() != ")"
        type_name = reader.word() if is_stream else word
        reader.require(")")
        return type_name, is_stream


def _text(option: Option) -> str:
    value = option.value
    return value.text if isinstance(value, Literal) else str(value)
