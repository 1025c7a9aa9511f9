"""The canonical and the normalized text of Protobuf schemas, which are hashed into GUIDs."""

from __future__ import annotations

import base64

import pytest

from moldau.schemas import protobuf
from moldau.schemas.protobuf.numbers import normalized_number
from moldau.schemas.schema import InvalidSchema

_PROTO3 = 'syntax = "proto3";\n'


def test_canonical_text_has_a_fixed_order_of_sections() -> None:
    text = _PROTO3 + (
        "enum E { Z = 0; } // gone\n"
        "message A { oneof o { string b = 2; } int32 a = 1 [deprecated = true];"
        ' reserved 7, 9 to max, "old"; }'
        'package p; import public "y.proto"; import "x.proto"; option java_package = "j";'
    )
    assert protobuf.parse(text).canonical == (
        'syntax = "proto3";\npackage p;\n\nimport "x.proto";\nimport public "y.proto";\n\n'
        'option java_package = "j";\n\n'
        'message A {\n  reserved 7, 9 to max, "old";\n\n  int32 a = 1 [deprecated = true];\n\n'
        "  oneof o {\n    string b = 2;\n  }\n}\nenum E {\n  Z = 0;\n}\n"
    )


def test_normalized_text_sorts_and_resolves() -> None:
    text = _PROTO3 + (
        'package p; import "google/protobuf/timestamp.proto"; import "a.proto";'
        "message B { map<string,A> m = 3; A a = 1; google.protobuf.Timestamp t = 2; reserved 9, 5 to 5; }"
        "message A { enum E { option allow_alias = true; B = 0; A = 0; } }"
    )
    assert protobuf.parse(text).normalized().canonical == (
        'syntax = "proto3";\npackage p;\n\nimport "a.proto";\nimport "google/protobuf/timestamp.proto";\n\n'
        "message B {\n  reserved 5;\n  reserved 9;\n\n  .p.A a = 1;\n  .google.protobuf.Timestamp t = 2;\n"
        "  map<string, .p.A> m = 3;\n}\nmessage A {\n  enum E {\n    option allow_alias = true;\n"
        "    A = 0;\n    B = 0;\n  }\n}\n"
    )


def test_options_set_in_several_statements_are_one_message() -> None:
    text = _PROTO3 + (
        'message A { string a = 1 [(confluent.field_meta).tags = "T", (.confluent.field_meta).doc = "x",'
        ' (confluent.field_meta) = { tags: "U", doc: "y", params: { key: "k", value: "v" } },'
        ' (confluent.field_meta).params = { key: "l", value: "w" }]; }'
    )
    assert protobuf.parse(text).normalized().canonical == (
        'syntax = "proto3";\n\nmessage A {\n  string a = 1 [(confluent.field_meta) = {\n    doc: "y",\n'
        '    params: [\n      {\n        key: "k",\n        value: "v"\n      },\n      {\n'
        '        key: "l",\n        value: "w"\n      }\n    ],\n    tags: [\n      "T",\n      "U"\n'
        "    ]\n  }];\n}\n"
    )


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("017", "15"),
        ("0x1F", "31"),
        ("08", "08"),
        ("-0", "0"),
        ("1.50", "1.5"),
        ("5.", "5"),
        ("1f", "1"),
        ("5L", "5"),
        ("1e3", "1000"),
        ("0.0005", "0.001"),
        ("0.0025", "0.002"),
        ("12345678.9", "12345678.9"),
        ("-0.0001", "-0"),
        ("1e30", "1000000015047466200000000000000"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("inf", "inf"),
        ("-nan", "-nan"),
        ("1.2.3", "1.2.3"),
        ("1e" + "9" * 300, "1e" + "9" * 300),
    ],
)
def test_numbers_are_printed_like_java(number: str, expected: str) -> None:
    assert normalized_number(number) == expected


def test_serialized_descriptor_is_read_again() -> None:
    text = _PROTO3 + "message A { map<string, int32> m = 1; optional string s = 2; }\n"
    serialized = protobuf.parse(text).formatted("serialized")
    assert base64.b64decode(serialized).startswith(b"\n\x07default")
    assert protobuf.parse(serialized).name == "A"


@pytest.mark.parametrize(
    "declarations",
    [
        "enum E { ONE = 1; }",
        "enum E { Z = 0; } enum F { Z = 0; }",
        "message A { oneof a { string a = 1; string b = 2; } }",
        "message A { string a_b = 1; string aB = 2; }",
    ],
)
def test_schema_that_only_java_links_is_valid(declarations: str) -> None:
    schema = protobuf.parse(_PROTO3 + declarations)
    schema.validate(strict=True)
    assert schema.formatted("serialized")


@pytest.mark.parametrize(
    ("declarations", "reason"),
    [
        ("message A { Missing m = 1; }", "Could not resolve type: Missing"),
        ("message A { string s = 1 [packed = true]; }", "packed = true"),
        ("message A { google.protobuf.Any a = 1; }", "is not defined"),
        ("extend google.protobuf.FieldOptions { string x = 50000; }", "is not defined"),
    ],
)
def test_schema_that_cannot_be_linked_is_invalid(declarations: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        protobuf.parse(_PROTO3 + declarations).validate(strict=True)


@pytest.mark.parametrize(
    "text",
    [
        "message A { map<double, string> m = 1; }",
        "message A { required int32 a = 1; }",
        "message A {} message A {}",
        "message A { int32 1a = 1; }",
        "message A { int32 a = 1 }",
        "message A {",
        "hello",
    ],
)
def test_text_that_does_not_parse_is_invalid(text: str) -> None:
    with pytest.raises(InvalidSchema):
        protobuf.parse(_PROTO3 + text)
