"""Linking: a descriptor pool with a file and everything it imports.

The pool of `protobuf` checks names and numbers; imports are checked here: cycles, and types of files that are
not imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moldau.schemas.protobuf import builtin
from moldau.schemas.protobuf.elements import (
    SCALARS,
    Enum,
    Extend,
    Field,
    Literal,
    Message,
    Option,
    ProtoFile,
    map_types,
)
from moldau.schemas.protobuf.index import Scope, TypeIndex
from moldau.schemas.protobuf.pool_rules import adapt
from moldau.schemas.protobuf.to_descriptor import descriptor_of, map_entry_name
from moldau.schemas.schema import InvalidSchema

#: The name of the file that is the schema, as in Confluent's registry.
FILE_NAME = "default"
_INVALID = "Invalid protobuf schema definition: "
_PACKED = Option("packed", Literal("true"))
_PACKABLE = SCALARS - {"string", "bytes"}


def descriptor(file: ProtoFile, references: Mapping[str, ProtoFile]) -> Any:
    """Return the `FileDescriptorProto` of a schema."""
    known = builtin.PATHS | references.keys()
    return descriptor_of(file, FILE_NAME, TypeIndex(file, references), known)


def link(file: ProtoFile, references: Mapping[str, ProtoFile]) -> Any:
    """Return a descriptor pool that contains the schema; raise `InvalidSchema` if it cannot be linked."""
    from google.protobuf.descriptor_pool import DescriptorPool

    order = _dependencies_first(file, references)
    visible = {path: _file(path, references) for path in _visible(file, references)}
    _check_types(file, TypeIndex(file, visible, with_builtin=False))
    pool = DescriptorPool()
    for path in order:
        _add(pool, _serialized(path, references), path)
    _add(pool, adapt(descriptor(file, references)).SerializeToString(), FILE_NAME)
    return pool


def _add(pool: Any, serialized: bytes, path: str) -> None:
    try:
        pool.AddSerializedFile(serialized)
    except TypeError as error:
        detail = str(error).rpartition("descriptor pool: ")[2]
        raise InvalidSchema(f"{_INVALID}{detail if path == FILE_NAME else f'{path}: {detail}'}") from None


def _file(path: str, references: Mapping[str, ProtoFile]) -> ProtoFile:
    return references[path] if path in references else builtin.file(path)


def _serialized(path: str, references: Mapping[str, ProtoFile]) -> bytes:
    if path not in references and path.startswith("google/protobuf/"):
        return builtin.serialized(path)
    file = _file(path, references)
    known = builtin.PATHS | references.keys()
    built = descriptor_of(file, path, TypeIndex(file, references), known)
    result: bytes = adapt(built).SerializeToString()
    return result


def _imports(file: ProtoFile, references: Mapping[str, ProtoFile]) -> Iterator[str]:
    return (
        path for path in (*file.imports, *file.public_imports) if path in references or path in builtin.PATHS
    )


def _dependencies_first(file: ProtoFile, references: Mapping[str, ProtoFile]) -> list[str]:
    """Return the imported files, each after the files it imports."""
    order: dict[str, None] = {}
    open_files: dict[str, Iterator[str]] = {FILE_NAME: _imports(file, references)}
    while open_files:
        path, imports = next(reversed(open_files.items()))
        found = next((imported for imported in imports if imported not in order), None)
        if found is None:
            open_files.popitem()
            order[path] = None
        elif found in open_files:
            raise InvalidSchema(f"{_INVALID}cyclic import of {found}")
        else:
            open_files[found] = _imports(_file(found, references), references)
    del order[FILE_NAME]
    return [*order]


def _visible(file: ProtoFile, references: Mapping[str, ProtoFile]) -> set[str]:
    """Return the imports of a file and what those import publicly."""
    visible: set[str] = set()
    waiting = [*_imports(file, references)]
    while waiting:
        path = waiting.pop()
        if path not in visible:
            visible.add(path)
            public = _file(path, references).public_imports
            waiting += [
                imported for imported in public if imported in references or imported in builtin.PATHS
            ]
    return visible


def _check_types(file: ProtoFile, index: TypeIndex) -> None:
    scope = Scope(file.package or "")
    _check_extends(file.extends, scope, index)
    for element in file.types:
        if isinstance(element, Message):
            _check_message(element, scope.inner(element.name), index)


def _check_extends(extends: Iterable[Extend], scope: Scope, index: TypeIndex) -> None:
    for extend in extends:
        for field in extend.fields:
            if index.type(extend.name, scope) is None:
                raise _not_defined(scope, field.name, extend.name)
            _check_field(field, scope, index, frozenset())


def _check_message(message: Message, scope: Scope, index: TypeIndex) -> None:
    groups = frozenset(group.name for group in message.groups)
    for field in (*message.fields, *(field for oneof in message.oneofs for field in oneof.fields)):
        _check_field(field, scope, index, groups)
    _check_extends(message.extends, scope, index)
    for element in message.types:
        if isinstance(element, Message):
            _check_message(element, scope.inner(element.name), index)


def _check_field(field: Field, scope: Scope, index: TypeIndex, groups: frozenset[str]) -> None:
    types = map_types(field.type)
    type_name = types[1] if types else field.type
    entry = None if type_name in SCALARS or type_name in groups else index.type(type_name, scope)
    if _PACKED in field.options and not (
        field.label == "repeated" and (field.type in _PACKABLE or (entry and isinstance(entry.element, Enum)))
    ):
        full_name = ".".join((*filter(None, (scope.package, *scope.types)), field.name))
        detail = "[packed = true] can only be specified for repeated primitive fields."
        raise InvalidSchema(f"{_INVALID}{full_name}: {detail}")
    if type_name in SCALARS or type_name in groups or entry is not None:
        return
    name = f"{map_entry_name(field.name)}.value" if types else field.name
    raise _not_defined(scope, name, type_name)


def _not_defined(scope: Scope, name: str, type_name: str) -> InvalidSchema:
    full_name = ".".join((*filter(None, (scope.package, *scope.types)), name))
    return InvalidSchema(f'{_INVALID}{full_name}: "{type_name}" is not defined.')
