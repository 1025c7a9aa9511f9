"""Which changes of a Protobuf schema Confluent's registry calls incompatible, and all it finds."""

from __future__ import annotations

import pytest

from moldau.schemas import protobuf

_PROTO3 = 'syntax = "proto3";\n'

#: The rule, the previous schema, the new schema, and all findings; incompatible ones are marked.
CASES = [
    ("a field added", "message A {}", "message A { string x = 1; }", ["FIELD_ADDED #/A/1"]),
    ("a field removed", "message A { string x = 1; }", "message A {}", ["FIELD_REMOVED #/A/1"]),
    (
        "a field renamed",
        "message A { int32 x = 1; }",
        "message A { int32 y = 1; }",
        ["FIELD_NAME_CHANGED #/A/1"],
    ),
    ("numbers of one encoding", "message A { int32 x = 1; }", "message A { bool x = 1; }", []),
    ("text and bytes are one encoding", "message A { string x = 1; }", "message A { bytes x = 1; }", []),
    (
        "another encoding",
        "message A { int32 x = 1; }",
        "message A { sint32 x = 1; }",
        ["! FIELD_SCALAR_KIND_CHANGED #/A/1"],
    ),
    (
        "a scalar becomes a message",
        "message A { int32 x = 1; }",
        "message A { A x = 1; }",
        ["! FIELD_KIND_CHANGED #/A/1"],
    ),
    (
        "a number becomes repeated",
        "message A { optional int32 x = 1; }",
        "message A { repeated int32 x = 1; }",
        ["! FIELD_NUMERIC_LABEL_CHANGED #/A/1"],
    ),
    (
        "a text becomes repeated",
        "message A { optional string x = 1; }",
        "message A { repeated string x = 1; }",
        ["FIELD_STRING_OR_BYTES_LABEL_CHANGED #/A/1"],
    ),
    (
        "messages are reported in the order of a hash map",
        "message Person {} message Address {}",
        "message Address {} message Person {}",
        ["MESSAGE_MOVED #/Address", "MESSAGE_MOVED #/Person"],
    ),
    ("a message removed", "message A {} message B {}", "message A {}", ["! MESSAGE_REMOVED #/B"]),
    (
        "a nested message added",
        "message A {}",
        "message A { message B {} }",
        ["MESSAGE_ADDED #/A/B"],
    ),
    (
        "another message type",
        "message A { B x = 1; } message B {} message C {}",
        "message A { C x = 1; } message B {} message C {}",
        ["! FIELD_NAMED_TYPE_CHANGED #/A/1"],
    ),
    ("another package", "package a; message A {}", "package b; message A {}", ["! PACKAGE_CHANGED #/"]),
    (
        "one field moves to a new oneof",
        "message A { string x = 1; string y = 2; }",
        "message A { oneof o { string x = 1; } string y = 2; }",
        ["ONEOF_ADDED #/A/o"],
    ),
    (
        "two fields move to a oneof",
        "message A { string x = 1; string y = 2; }",
        "message A { oneof o { string x = 1; string y = 2; } }",
        ["! MULTIPLE_FIELDS_MOVED_TO_ONEOF #/A/o", "ONEOF_ADDED #/A/o"],
    ),
    (
        "a field moves to an existing oneof",
        "message A { oneof o { string x = 1; } string y = 2; }",
        "message A { oneof o { string x = 1; string y = 2; } }",
        ["! FIELD_MOVED_TO_EXISTING_ONEOF #/A/o"],
    ),
    (
        "a field of a oneof removed",
        "message A { oneof o { string x = 1; string y = 2; } }",
        "message A { oneof o { string x = 1; } }",
        ["! ONEOF_FIELD_REMOVED #/A/o/2"],
    ),
    (
        "a oneof removed with all its fields",
        "message A { oneof o { string x = 1; } }",
        "message A {}",
        ["ONEOF_REMOVED #/A/o"],
    ),
    (
        "a map is its entries",
        "message A { map<string, int32> m = 1; }",
        "message A { map<string, string> m = 1; }",
        ["! FIELD_SCALAR_KIND_CHANGED #/A/1"],
    ),
    (
        "constants are reported in the order of a hash map",
        "enum E { Z = 0; A = 17; B = 2; }",
        "enum E { Z = 0; }",
        ["ENUM_CONST_REMOVED #/E/17", "ENUM_CONST_REMOVED #/E/2"],
    ),
]


def _findings(new: protobuf.ProtobufSchema, old: protobuf.ProtobufSchema) -> list[str]:
    return [
        f"{'' if found.is_compatible else '! '}{found.kind} {found.path}" for found in new.differences(old)
    ]


@pytest.mark.parametrize(("previous", "current", "expected"), [pytest.param(*c[1:], id=c[0]) for c in CASES])
def test_findings(previous: str, current: str, expected: list[str]) -> None:
    new, old = protobuf.parse(_PROTO3 + current), protobuf.parse(_PROTO3 + previous)
    assert _findings(new, old) == expected


@pytest.mark.parametrize(
    ("previous", "current", "expected"),
    [
        (
            "message A {}",
            "message A { required string x = 1; }",
            "A required field  at path '#/A/1' in the %s schema is missing in the %s schema",
        ),
        (
            "message A { required string x = 1; }",
            "message A {}",
            "The %s schema is missing a required field at path: '#/A/1' in the %s schema",
        ),
    ],
)
def test_messages_of_required_fields(previous: str, current: str, expected: str) -> None:
    (found,) = protobuf.parse(current).incompatibilities(protobuf.parse(previous))
    assert expected in found.message


def test_message_of_another_version_of_a_reference_is_compared() -> None:
    text = _PROTO3 + 'import "r.proto"; message A { r.M m = 1; }'
    references = [
        {"r.proto": f"{_PROTO3}package r; message M {{ {kind} x = 1; }}"} for kind in ("int32", "string")
    ]
    new, old = protobuf.parse(text, references[1]), protobuf.parse(text, references[0])
    assert _findings(new, old) == [
        "! FIELD_SCALAR_KIND_CHANGED #/M/1",
        "! FIELD_NAMED_TYPE_CHANGED #/A/1",
    ]
