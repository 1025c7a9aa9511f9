"""Compiles declarations to Python at the first use of each class and version.

`encoder` and `decoder` compile and cache the codec of a message; `install_constructor` sets the `__init__` of
a class; `source` returns the generated text, which is also in `linecache` for tracebacks.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

from moldau.protocol.decoder import Decoder
from moldau.protocol.encoder import Encoder
from moldau.protocol.errors import DecodeError, EncodeError
from moldau.protocol.fields import FRESH, Field, StructType
from moldau.protocol.schema import Buffer, Message, Struct, shared_default, shares_default


def encoder(message: type[Message], version: int) -> Callable[[Any], list[bytes | memoryview]]:
    """Compile the encoder of a message in a version, and cache it in the class."""
    if not message.VERSIONS.has(version):
        raise EncodeError(f"{message.__name__} has no version {version}")
    writer = Encoder(message, version)
    text = writer.write()
    function: Callable[[Any], list[bytes | memoryview]]
    function = _compiled(text, f"<{message.__name__} v{version} encode>", "encode", writer.constants)
    message.ENCODERS[version] = function
    return function


def decoder(message: type[Message], version: int) -> Callable[[Buffer, int], tuple[Any, int]]:
    """Compile the decoder of a message in a version, and cache it in the class."""
    if not message.VERSIONS.has(version):
        raise DecodeError(f"{message.__name__} has no version {version}")
    writer = Decoder(message, version)
    text = writer.write()
    function: Callable[[Buffer, int], tuple[Any, int]]
    function = _compiled(text, f"<{message.__name__} v{version} decode>", "decode", writer.constants)
    message.DECODERS[version] = function
    return function


def source(cls: type[Message], version: int) -> str:
    """The generated source of a message in a version: constructor, encoder, decoder."""
    if not cls.VERSIONS.has(version):
        raise ValueError(f"{cls.__name__} has no version {version}")
    parts = (_constructor_source(cls)[0], Encoder(cls, version).write(), Decoder(cls, version).write())
    return "\n\n".join(parts)


def install_constructor(struct_type: type[Struct]) -> Callable[..., None]:
    """Compile the `__init__` of a class and install it."""
    text, constants = _constructor_source(struct_type)
    function: Callable[..., None] = _compiled(
        text, f"<{struct_type.__name__} constructor>", "__init__", constants
    )
    type.__setattr__(struct_type, "__init__", function)
    return function


def _constructor_source(struct_type: StructType) -> tuple[str, dict[str, Any]]:
    constants: dict[str, Any] = {"FRESH": FRESH}
    parameters, body = [], []
    for field in struct_type.FIELDS:
        parameter, value = _parameter(field, constants)
        parameters.append(parameter)
        body.append(f"    self.{field.name} = {value}")
    signature = ", ".join(["self", "*", *parameters] if parameters else ["self"])
    return "\n".join([f"def __init__({signature}):", *(body or ["    pass"])]) + "\n", constants


def _parameter(field: Field, constants: dict[str, Any]) -> tuple[str, str]:
    """The parameter of a field with its default, and the expression that is assigned."""
    name = field.name
    if field.default is not FRESH:
        constants[f"default_{name}"] = field.default
        return f"{name}=default_{name}", name
    if field.is_array:
        return f"{name}=FRESH", f"[] if {name} is FRESH else {name}"
    if not isinstance(field.type, StructType):
        raise TypeError(f"{field!r} has no default")
    if shares_default(field):
        constants[f"default_{name}"] = shared_default(field.type)
        return f"{name}=default_{name}", name
    constants[f"new_{name}"] = field.type
    return f"{name}=FRESH", f"new_{name}() if {name} is FRESH else {name}"


def _compiled(text: str, filename: str, function: str, constants: dict[str, Any]) -> Any:
    namespace = dict(constants)
    exec(compile(text, filename, "exec"), namespace)
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    return namespace[function]
