"""Tags of messages and fields: the field `tags` of the options `confluent.message_meta` and `field_meta`.

An entity is a kind (`sr_record` or `sr_field`) and a path: the names of the enclosing messages without the
package, then the name of the field, which may follow the name of its oneof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from moldau.schemas import hashorder
from moldau.schemas.protobuf.elements import (
    Field,
    Message,
    OneOf,
    Option,
    OptionValue,
    ProtoFile,
    Type,
    messages,
)
from moldau.schemas.protobuf.options import merged
from moldau.schemas.schema import InvalidSchema

RECORD: Final = "sr_record"
FIELD: Final = "sr_field"
_META: Final = {RECORD: "confluent.message_meta", FIELD: "confluent.field_meta"}
_TAGS: Final = "tags"

#: A kind and a path.
Entity = tuple[str, str]
#: Tags by entity, in the order in which they are to be changed.
Tags = Mapping[Entity, Iterable[str]]


def tagged_entities(file: ProtoFile) -> Iterator[tuple[str, str, list[str]]]:
    """Yield kind, path and tags of everything that has tags: messages before their fields."""
    waiting = [(message, "") for message in reversed(messages(file.types))]
    while waiting:
        message, outer = waiting.pop()
        path = outer + message.name
        if tags := _tags(RECORD, message.options):
            yield RECORD, path, tags
        for field in (*(field for oneof in message.oneofs for field in oneof.fields), *message.fields):
            if tags := _tags(FIELD, field.options):
                yield FIELD, f"{path}.{field.name}", tags
        waiting += [(nested, f"{path}.") for nested in reversed(messages(message.types))]


def _tags(kind: str, options: Iterable[Option]) -> list[str]:
    option = merged(options).get(_META[kind])
    value = option.value.get(_TAGS, []) if option is not None and isinstance(option.value, dict) else []
    return [tag for tag in (value if isinstance(value, list) else [value]) if isinstance(tag, str)]


def with_tags(file: ProtoFile, added: Tags, removed: Tags) -> ProtoFile:
    """Return the file with tags added, then others removed; raise `InvalidSchema` for an unknown entity."""
    for entity in dict.fromkeys((*added, *removed)):
        kind, path = entity
        change = _Change(kind, list(added.get(entity, ())), frozenset(removed.get(entity, ())))
        file = replace(file, types=change.types(file.types, path.split(".")))
    return file


class _Change:
    """The change of one entity. Elements are immutable: those around it are replaced, too."""

    def __init__(self, kind: str, added: list[str], removed: frozenset[str]) -> None:
        self._kind = kind
        self._added = added
        self._removed = removed

    def types(self, types: tuple[Type, ...], names: list[str]) -> tuple[Type, ...]:
        """Change the entity below the messages declared at one place."""
        for index, element in enumerate(types):
            if isinstance(element, Message) and element.name == names[0] and self._is_inside(names):
                return (*types[:index], self._message(element, names[1:]), *types[index + 1 :])
        noun, name = (
            ("Field", names[-1]) if self._kind == FIELD and len(names) == 1 else ("Message", names[0])
        )
        raise InvalidSchema(f"No matching {noun} with name '{name}' found in the schema")

    def _is_inside(self, names: list[str]) -> bool:
        return self._kind == RECORD or len(names) > 1

    def _message(self, message: Message, names: list[str]) -> Message:
        if not names:
            return replace(message, options=self._options(message.options))
        if self._kind == FIELD and len(names) == 1:
            return self._field(message, names[0])
        if self._kind == FIELD and len(names) == 2 and names[0] not in _names(messages(message.types)):
            return self._oneof_field(message, *names)
        return replace(message, types=self.types(message.types, names))

    def _field(self, message: Message, name: str) -> Message:
        if name in _names(message.fields):
            return replace(message, fields=self._fields(message.fields, name))
        oneof = next((oneof.name for oneof in message.oneofs if name in _names(oneof.fields)), "")
        return self._oneof_field(message, oneof, name)

    def _oneof_field(self, message: Message, oneof_name: str, name: str) -> Message:
        for index, oneof in enumerate(message.oneofs):
            if oneof.name == oneof_name and name in _names(oneof.fields):
                changed = replace(oneof, fields=self._fields(oneof.fields, name))
                return replace(
                    message, oneofs=(*message.oneofs[:index], changed, *message.oneofs[index + 1 :])
                )
        raise InvalidSchema(f"No matching Field with name '{name}' found in the schema")

    def _fields(self, fields: tuple[Field, ...], name: str) -> tuple[Field, ...]:
        return tuple(
            replace(field, options=self._options(field.options)) if field.name == name else field
            for field in fields
        )

    def _options(self, options: tuple[Option, ...]) -> tuple[Option, ...]:
        """Return the options with changed tags, in the order in which Confluent's registry prints them."""
        name = _META[self._kind]
        if self._added:
            tags: list[OptionValue] = [*self._added]
            options = (*options, Option(name, {_TAGS: tags}, is_custom=True))
        result = merged(options)
        meta = result.get(name)
        if self._removed and meta is not None and isinstance(meta.value, dict) and _TAGS in meta.value:
            values = self._without_removed(meta.value)
            if values:
                result[name] = Option(name, values, is_custom=True)
            else:
                del result[name]
        # Java's `HashMap.merge` adds a key before the others of its bucket.
        return tuple(result[key] for key in hashorder.in_grown_map([*reversed(result)]))

    def _without_removed(self, values: dict[str, OptionValue]) -> dict[str, OptionValue]:
        tags = values[_TAGS]
        kept = [tag for tag in (tags if isinstance(tags, list) else [tags]) if tag not in self._removed]
        rest = {key: value for key, value in values.items() if key != _TAGS}
        return {key: kept if key == _TAGS else rest[key] for key in values} if kept else rest


def _names(declared: Iterable[Field | Message | OneOf]) -> set[str]:
    return {element.name for element in declared}
