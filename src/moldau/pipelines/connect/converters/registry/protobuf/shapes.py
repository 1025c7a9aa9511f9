"""What descriptors say about the fields of a message, found once per message type."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from google.protobuf import descriptor_pb2

from moldau.pipelines.connect.converters.registry.protobuf import options as names
from moldau.pipelines.connect.converters.registry.protobuf.options import Options

_MAX_TYPES: Final = 1000


@dataclass(frozen=True, slots=True)
class Shape:
    #: The oneofs that the file declares, without those of proto3 optional fields.
    unions: tuple[Any, ...]
    #: The fields outside of them, in the order of the file.
    fields: tuple[Any, ...]
    _proto3_optional: frozenset[str]
    _proto2_optional: frozenset[str]

    def is_optional(self, field: Any, options: Options) -> bool:
        """Return whether a field is declared optional, so that it can be absent."""
        name = field.name
        return name in self._proto3_optional or (
            options.optional_for_proto2 and name in self._proto2_optional
        )


@lru_cache(maxsize=_MAX_TYPES)
def shape(descriptor: Any) -> Shape:
    proto = descriptor_pb2.DescriptorProto()
    descriptor.CopyToProto(proto)
    file = descriptor_pb2.FileDescriptorProto.FromString(descriptor.file.serialized_pb)
    synthetic = frozenset(each.name for each in proto.field if each.proto3_optional)
    optional = [
        each.name
        for each in proto.field
        if each.label == each.LABEL_OPTIONAL and not each.HasField("oneof_index")
    ]
    return Shape(
        tuple(each for each in descriptor.oneofs if not any(one.name in synthetic for one in each.fields)),
        tuple(each for each in descriptor.fields if each.containing_oneof is None or each.name in synthetic),
        synthetic,
        frozenset(optional if file.syntax in ("", "proto2") else ()),
    )


def union_field(oneof: Any, options: Options) -> str:
    """Return the name of the field for a oneof."""
    return f"{oneof.name}_{oneof.index}" if options.index_for_unions else str(oneof.name)


def is_map(field: Any) -> bool:
    """Return whether a field is a map, or repeated entries that stand for one."""
    if not field.is_repeated or field.message_type is None:
        return False
    fields = field.message_type.fields
    return (
        field.message_type.name.endswith(names.ENTRY)
        and [each.name for each in fields] == [names.KEY, names.VALUE]
        and not any(each.is_repeated for each in fields)
    )
