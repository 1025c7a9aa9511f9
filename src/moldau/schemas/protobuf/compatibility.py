"""The differences of two schemas, and which of them prevent reading older data.

Messages are compared by name, fields by number: what counts is the encoding. The message of a field that is
declared in a reference is compared, too, because the reference may be another version. The kinds, paths and
decisions are those of Confluent's registry.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from moldau.schemas import hashorder
from moldau.schemas.protobuf.elements import (
    SCALARS,
    Enum,
    Field,
    Message,
    ProtoFile,
    Type,
    map_entry_types,
    map_types,
    messages,
)
from moldau.schemas.protobuf.index import Scope, TypeEntry, TypeIndex
from moldau.schemas.trampoline import Recursion, run

#: After this many comparisons of referenced messages, a pair is not compared again: messages that refer to
#: the same messages several times, over several levels, would otherwise take exponential time.
MAX_COMPARISONS = 2_000


class Kind(StrEnum):
    """The kinds of differences."""

    PACKAGE_CHANGED = "PACKAGE_CHANGED"
    MESSAGE_ADDED = "MESSAGE_ADDED"
    MESSAGE_REMOVED = "MESSAGE_REMOVED"
    MESSAGE_MOVED = "MESSAGE_MOVED"
    ENUM_ADDED = "ENUM_ADDED"
    ENUM_REMOVED = "ENUM_REMOVED"
    ENUM_CONST_ADDED = "ENUM_CONST_ADDED"
    ENUM_CONST_CHANGED = "ENUM_CONST_CHANGED"
    ENUM_CONST_REMOVED = "ENUM_CONST_REMOVED"
    FIELD_ADDED = "FIELD_ADDED"
    FIELD_REMOVED = "FIELD_REMOVED"
    FIELD_NAME_CHANGED = "FIELD_NAME_CHANGED"
    FIELD_KIND_CHANGED = "FIELD_KIND_CHANGED"
    FIELD_SCALAR_KIND_CHANGED = "FIELD_SCALAR_KIND_CHANGED"
    FIELD_NAMED_TYPE_CHANGED = "FIELD_NAMED_TYPE_CHANGED"
    FIELD_NUMERIC_LABEL_CHANGED = "FIELD_NUMERIC_LABEL_CHANGED"
    FIELD_STRING_OR_BYTES_LABEL_CHANGED = "FIELD_STRING_OR_BYTES_LABEL_CHANGED"
    REQUIRED_FIELD_ADDED = "REQUIRED_FIELD_ADDED"
    REQUIRED_FIELD_REMOVED = "REQUIRED_FIELD_REMOVED"
    ONEOF_ADDED = "ONEOF_ADDED"
    ONEOF_REMOVED = "ONEOF_REMOVED"
    ONEOF_FIELD_ADDED = "ONEOF_FIELD_ADDED"
    ONEOF_FIELD_REMOVED = "ONEOF_FIELD_REMOVED"
    ONEOF_FIELD_MOVED_TO_TOP_LEVEL = "ONEOF_FIELD_MOVED_TO_TOP_LEVEL"
    MULTIPLE_FIELDS_MOVED_TO_ONEOF = "MULTIPLE_FIELDS_MOVED_TO_ONEOF"
    FIELD_MOVED_TO_EXISTING_ONEOF = "FIELD_MOVED_TO_EXISTING_ONEOF"


#: The kinds that make a schema incompatible, and how an answer describes them; `%s` are the two schemas.
DESCRIPTIONS = {
    Kind.PACKAGE_CHANGED: "The package at '{}' in the %s schema does not match the package in the %s schema",
    Kind.MESSAGE_REMOVED: "The %s schema is missing a MESSAGE type at path '{}' in the %s schema",
    Kind.FIELD_KIND_CHANGED: "The type of a field at path '{}' in the %s schema does not match the %s schema",
    Kind.FIELD_SCALAR_KIND_CHANGED: (
        "The kind of a SCALAR field at path '{}' in the %s schema does not match its kind in the %s schema"
    ),
    Kind.FIELD_NAMED_TYPE_CHANGED: (
        "The type of a MESSAGE field at path '{}' in the %s schema does not match its type in the %s schema"
    ),
    Kind.FIELD_NUMERIC_LABEL_CHANGED: (
        "The label for a NUMERIC field at path '{}' in the %s schema does not match its label"
        " in the %s schema"
    ),
    Kind.REQUIRED_FIELD_ADDED: "A required field  at path '{}' in the %s schema is missing in the %s schema",
    Kind.REQUIRED_FIELD_REMOVED: "The %s schema is missing a required field at path: '{}' in the %s schema",
    Kind.ONEOF_FIELD_REMOVED: "The %s schema is missing a oneof field at path '{}' in the %s schema",
    Kind.MULTIPLE_FIELDS_MOVED_TO_ONEOF: (
        "Multiple fields in the oneof at path '{}' in the %s schema are outside a oneof in the %s schema"
    ),
    Kind.FIELD_MOVED_TO_EXISTING_ONEOF: (
        "A field in the oneof at path '{}' in the %s schema is outside an existing oneof in the %s schema"
    ),
}

#: Scalar types that are encoded alike, so that one can be read as the other. Enums are numbers.
_ENCODINGS = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool"), "number"),
    **dict.fromkeys(("sint32", "sint64"), "zigzag"),
    **dict.fromkeys(("string", "bytes"), "bytes"),
    **dict.fromkeys(("fixed32", "sfixed32"), "fixed32"),
    **dict.fromkeys(("fixed64", "sfixed64"), "fixed64"),
    "float": "float",
    "double": "double",
}


class Difference(NamedTuple):
    """One difference, with its path: message names, oneof and field number."""

    kind: Kind
    path: str

    @property
    def is_compatible(self) -> bool:
        return self.kind not in DESCRIPTIONS

    @property
    def message(self) -> str:
        """The line of an answer, with `%s` for the roles of the two schemas."""
        return (
            f'{{errorType:"{self.kind}", description:"{DESCRIPTIONS.get(self.kind, "").format(self.path)}"}}'
        )


def differences(
    previous: ProtoFile, previous_index: TypeIndex, current: ProtoFile, current_index: TypeIndex
) -> list[Difference]:
    """Return all differences between two schemas, compatible ones included."""
    progress = _Progress()
    comparison = _Comparison(
        _Side(previous_index, Scope(previous_index.package)),
        _Side(current_index, Scope(current_index.package)),
        (),
        progress,
    )
    if previous.package != current.package:
        comparison.add(Kind.PACKAGE_CHANGED)
    run(comparison.types(previous.types, current.types))
    return comparison.found


class _Progress:
    """What is being compared, over all levels."""

    def __init__(self) -> None:
        #: The previous messages whose fields are being compared: recursion ends there.
        self.open: set[int] = set()
        self.compared: set[tuple[int, int]] = set()
        self.comparisons = 0

    def skips(self, previous: Message, current: Message) -> bool:
        self.comparisons += 1
        pair = (id(previous), id(current))
        if self.comparisons > MAX_COMPARISONS and pair in self.compared:
            return True
        self.compared.add(pair)
        return False


class _Side(NamedTuple):
    """One of the two schemas and the scope in which its names are resolved."""

    types: TypeIndex
    scope: Scope

    def inner(self, name: str) -> _Side:
        return _Side(self.types, self.scope.inner(name))

    def map_types(self, type_name: str) -> tuple[str, str] | None:
        types = map_types(type_name)
        if types is None and type_name not in SCALARS:
            entry = self.types.type(type_name, self.scope)
            types = map_entry_types(entry.element) if entry is not None else None
        return types

    def encoding(self, type_name: str) -> str | None:
        """Return how a scalar is encoded, None for messages."""
        if type_name in SCALARS:
            return _ENCODINGS[type_name]
        entry = self.types.type(type_name, self.scope)
        return "number" if entry is not None and isinstance(entry.element, Enum) else None


class _Comparison:
    """Compares two scopes; the differences are collected in `found`."""

    def __init__(self, previous: _Side, current: _Side, path: tuple[str, ...], progress: _Progress) -> None:
        self._previous = previous
        self._current = current
        self._path = path
        self._progress = progress
        self.found: list[Difference] = []

    def add(self, kind: Kind, *path: str) -> None:
        self.found.append(Difference(kind, "#/" + "/".join((*self._path, *path))))

    def _inner(self, name: str) -> _Comparison:
        inner = _Comparison(
            self._previous.inner(name), self._current.inner(name), (*self._path, name), self._progress
        )
        inner.found = self.found
        return inner

    def types(self, previous: tuple[Type, ...], current: tuple[Type, ...]) -> Recursion[None]:
        """Compare the types declared at one place."""
        old = {message.name: (position, message) for position, message in enumerate(messages(previous))}
        new = {message.name: (position, message) for position, message in enumerate(messages(current))}
        for name in hashorder.in_set(old, new):
            if name not in new:
                if map_entry_types(old[name][1]) is None:
                    self.add(Kind.MESSAGE_REMOVED, name)
            elif name not in old:
                if map_entry_types(new[name][1]) is None:
                    self.add(Kind.MESSAGE_ADDED, name)
            else:
                yield self._inner(name).message(old[name][1], new[name][1])
                if old[name][0] != new[name][0]:
                    self.add(Kind.MESSAGE_MOVED, name)
        self._enums(previous, current)

    def _enums(self, previous: tuple[Type, ...], current: tuple[Type, ...]) -> None:
        old = {element.name: element for element in previous if isinstance(element, Enum)}
        new = {element.name: element for element in current if isinstance(element, Enum)}
        for name in hashorder.in_set(old, new):
            if name not in new:
                self.add(Kind.ENUM_REMOVED, name)
            elif name not in old:
                self.add(Kind.ENUM_ADDED, name)
            else:
                self._constants(old[name], new[name])

    def _constants(self, previous: Enum, current: Enum) -> None:
        old = {constant.number: constant.name for constant in previous.constants}
        new = {constant.number: constant.name for constant in current.constants}
        for number in hashorder.in_set(old, new):
            if number not in new:
                self.add(Kind.ENUM_CONST_REMOVED, previous.name, str(number))
            elif number not in old:
                self.add(Kind.ENUM_CONST_ADDED, previous.name, str(number))
            elif old[number] != new[number]:
                self.add(Kind.ENUM_CONST_CHANGED, previous.name, str(number))

    def message(self, previous: Message, current: Message) -> Recursion[None]:
        """Compare two messages that stand for each other."""
        if id(previous) not in self._progress.open:
            self._progress.open.add(id(previous))
            self._oneofs(_Members(previous), _Members(current))
            yield self._fields(_Members(previous), _Members(current))
            yield self.types(previous.types, current.types)
            self._progress.open.discard(id(previous))
        else:
            yield self.types(previous.types, current.types)

    def _oneofs(self, previous: _Members, current: _Members) -> None:
        for name, numbers in current.oneofs.items():
            # Fields were exclusive before only if they were in one oneof; new fields do not count.
            moved = sum(number in previous.fields and number not in previous.oneof_of for number in numbers)
            sources = {previous.oneof_of[number] for number in numbers if number in previous.oneof_of}
            if moved + len(sources) > 1:
                several = moved > 1
                self.add(
                    Kind.MULTIPLE_FIELDS_MOVED_TO_ONEOF if several else Kind.FIELD_MOVED_TO_EXISTING_ONEOF,
                    name,
                )
        for name in sorted(previous.oneofs.keys() | current.oneofs.keys()):
            if name not in current.oneofs:
                self.add(Kind.ONEOF_REMOVED, name)
            elif name not in previous.oneofs:
                self.add(Kind.ONEOF_ADDED, name)

    def _fields(self, previous: _Members, current: _Members) -> Recursion[None]:
        for number in sorted(previous.fields.keys() | current.fields.keys()):
            if number not in current.fields:
                self._removed_field(number, previous, current)
            elif number not in previous.fields:
                self._added_field(number, current)
            else:
                if number in previous.oneof_of and number not in current.oneof_of:
                    self.add(Kind.ONEOF_FIELD_MOVED_TO_TOP_LEVEL, str(number))
                yield self._field(previous.fields[number], current.fields[number], current.path(number))

    def _removed_field(self, number: int, previous: _Members, current: _Members) -> None:
        oneof = previous.oneof_of.get(number)
        if oneof is None:
            required = previous.fields[number].label == "required"
            self.add(Kind.REQUIRED_FIELD_REMOVED if required else Kind.FIELD_REMOVED, str(number))
        elif oneof in current.oneofs or current.fields.keys() & previous.oneofs[oneof]:
            self.add(Kind.ONEOF_FIELD_REMOVED, oneof, str(number))

    def _added_field(self, number: int, current: _Members) -> None:
        if number in current.oneof_of:
            self.add(Kind.ONEOF_FIELD_ADDED, *current.path(number))
        else:
            required = current.fields[number].label == "required"
            self.add(Kind.REQUIRED_FIELD_ADDED if required else Kind.FIELD_ADDED, str(number))

    def _field(self, previous: Field, current: Field, path: tuple[str, ...]) -> Recursion[None]:
        if previous.name != current.name:
            self.add(Kind.FIELD_NAME_CHANGED, *path)
        kinds = yield self._type_changes(previous.type, current.type, (previous.label, current.label))
        for kind in kinds:
            self.add(kind, *path)

    def _type_changes(
        self, previous: str, current: str, labels: tuple[str | None, str | None]
    ) -> Recursion[list[Kind]]:
        old_map, new_map = self._previous.map_types(previous), self._current.map_types(current)
        if old_map is not None and new_map is not None:
            changes: list[Kind] = []
            for old, new in zip(old_map, new_map, strict=True):
                changes += yield self._type_changes(old, new, (None, None))
            return changes
        old_encoding, new_encoding = self._previous.encoding(previous), self._current.encoding(current)
        if old_map or new_map or (old_encoding is None) != (new_encoding is None):
            return [Kind.FIELD_KIND_CHANGED]
        if old_encoding is None:
            is_changed = yield self._message_is_changed(previous, current)
            return [Kind.FIELD_NAMED_TYPE_CHANGED] if is_changed else []
        if old_encoding != new_encoding:
            return [Kind.FIELD_SCALAR_KIND_CHANGED]
        if None not in labels and labels[0] != labels[1]:
            is_bytes = old_encoding == "bytes"
            return [
                Kind.FIELD_STRING_OR_BYTES_LABEL_CHANGED if is_bytes else Kind.FIELD_NUMERIC_LABEL_CHANGED
            ]
        return []

    def _message_is_changed(self, previous: str, current: str) -> Recursion[bool]:
        old = self._previous.types.type(previous, self._previous.scope)
        new = self._current.types.type(current, self._current.scope)
        if old is None or new is None:
            return previous != current
        local_name = old.full_name.removeprefix(old.package + ".")
        if local_name != new.full_name.removeprefix(new.package + "."):
            return True
        if old.is_local and new.is_local:
            return False
        is_changed: bool = yield self._has_incompatible_reference(old, new, local_name)
        return is_changed

    def _has_incompatible_reference(self, old: TypeEntry, new: TypeEntry, local_name: str) -> Recursion[bool]:
        """Compare two messages at the place of their declaration, and add what is found there."""
        previous, current = old.element, new.element
        if not isinstance(previous, Message) or not isinstance(current, Message):
            return False
        if self._progress.skips(previous, current):
            return False
        names = tuple(local_name.split("."))
        comparison = _Comparison(
            _Side(self._previous.types, Scope(old.package, names)),
            _Side(self._current.types, Scope(new.package, names)),
            names,
            self._progress,
        )
        yield comparison.message(previous, current)
        self.found += comparison.found
        return not all(difference.is_compatible for difference in comparison.found)


class _Members:
    """The fields of a message by number, and the oneofs they are in."""

    def __init__(self, message: Message) -> None:
        self.fields = {field.number: field for field in message.fields}
        self.oneofs: dict[str, set[int]] = {}
        self.oneof_of: dict[int, str] = {}
        for oneof in message.oneofs:
            self.oneofs[oneof.name] = {field.number for field in oneof.fields}
            for field in oneof.fields:
                self.fields[field.number] = field
                self.oneof_of[field.number] = oneof.name

    def path(self, number: int) -> tuple[str, ...]:
        oneof = self.oneof_of.get(number)
        return (str(number),) if oneof is None else (oneof, str(number))
