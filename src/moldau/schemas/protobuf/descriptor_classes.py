"""The descriptor messages of `protobuf`, with the options of `confluent/meta.proto` known to them.

They belong to a descriptor pool of their own: other libraries in the process may register the same options in
the default pool. Maps are declared as repeated entries, which is the same on the wire and keeps their order.
"""

from __future__ import annotations

from functools import cache
from typing import Any

#: The extension number of all options of `confluent/meta.proto`.
_META_NUMBER = 1088
_META_OPTIONS = {
    "file_meta": "FileOptions",
    "message_meta": "MessageOptions",
    "field_meta": "FieldOptions",
    "enum_meta": "EnumOptions",
    "enum_value_meta": "EnumValueOptions",
}
_META_FIELDS = {
    "Meta": ("doc", "params:Param", "tags:", "rules:Rule"),
    "Param": ("key", "value"),
    "Rule": ("name", "doc", "expr", "sql"),
}

_KNOWN = {
    "FileOptions": "java_package java_outer_classname java_multiple_files java_generate_equals_and_hash"
    " java_string_check_utf8 optimize_for go_package cc_generic_services java_generic_services"
    " py_generic_services deprecated cc_enable_arenas objc_class_prefix csharp_namespace swift_prefix"
    " php_class_prefix php_namespace php_metadata_namespace ruby_package features",
    "MessageOptions": "no_standard_descriptor_accessor deprecated map_entry features",
    "FieldOptions": "ctype packed jstype deprecated debug_redact retention targets edition_defaults features"
    " feature_support",
    "OneofOptions": "features",
    "EnumOptions": "allow_alias deprecated features",
    "EnumValueOptions": "deprecated debug_redact features feature_support",
    "ExtensionRangeOptions": "declaration features verification",
    "ServiceOptions": "deprecated features",
    "MethodOptions": "deprecated idempotency_level features",
}
#: The options in descriptors, by message and in the order in which they are printed; others are dropped.
KNOWN_OPTIONS = {kind: tuple(names.split()) for kind, names in _KNOWN.items()}


@cache
def pool() -> Any:
    """Return the pool with `google/protobuf/descriptor.proto` and the options."""
    from google.protobuf import descriptor_pb2
    from google.protobuf.descriptor_pool import DescriptorPool

    kinds = descriptor_pb2.FieldDescriptorProto
    meta = descriptor_pb2.FileDescriptorProto(
        name="confluent/meta.proto",
        package="confluent",
        syntax="proto3",
        dependency=["google/protobuf/descriptor.proto"],
    )
    for message, fields in _META_FIELDS.items():
        declared = meta.message_type.add(name=message)
        for number, field in enumerate(fields, start=1):
            name, is_repeated, type_name = field.partition(":")
            declared.field.add(
                name=name,
                number=number,
                label=kinds.LABEL_REPEATED if is_repeated else kinds.LABEL_OPTIONAL,
                type=kinds.TYPE_MESSAGE if type_name else kinds.TYPE_STRING,
                type_name=type_name or None,
            )
    for option, extendee in _META_OPTIONS.items():
        meta.extension.add(
            name=option,
            number=_META_NUMBER,
            label=kinds.LABEL_OPTIONAL,
            type=kinds.TYPE_MESSAGE,
            type_name=".confluent.Meta",
            extendee=f".google.protobuf.{extendee}",
        )
    result = DescriptorPool()
    result.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)
    result.AddSerializedFile(meta.SerializeToString())
    return result


@cache
def file_class() -> Any:
    """Return the class of `FileDescriptorProto`."""
    from google.protobuf.message_factory import GetMessageClass

    # Extensions are parsed only if the classes of the file that declares them exist.
    GetMessageClass(pool().FindMessageTypeByName("confluent.Meta"))
    return GetMessageClass(pool().FindMessageTypeByName("google.protobuf.FileDescriptorProto"))


def meta_extension(full_name: str) -> Any | None:
    """Return the extension of an option `confluent.*_meta`, None for other names."""
    package, _, name = full_name.removeprefix(".").rpartition(".")
    if package != "confluent" or name not in _META_OPTIONS:
        return None
    return pool().FindExtensionByName(f"confluent.{name}")
