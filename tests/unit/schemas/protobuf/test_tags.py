"""Tags of messages and fields: their paths, and changing them."""

from __future__ import annotations

import pytest

from moldau.schemas import protobuf
from moldau.schemas.schema import InvalidSchema

_TEXT = """syntax = "proto3";
package p;
message A {
  option (confluent.message_meta).tags = "M";
  string a = 1 [deprecated = true, (confluent.field_meta) = { doc: "d", tags: ["T", "U"] }];
  oneof o { string b = 2; }
  message B { string c = 1; }
}
"""
_FIELD = ("sr_field", "A.a")


def test_tags_are_listed_with_paths_without_the_package() -> None:
    assert protobuf.parse(_TEXT).tags() == [("sr_record", "A", ["M"]), ("sr_field", "A.a", ["T", "U"])]


@pytest.mark.parametrize("entity", [("sr_field", "A.b"), ("sr_record", "A.B"), ("sr_field", "A.B.c")])
def test_added_tags_are_listed(entity: tuple[str, str]) -> None:
    text = protobuf.parse(_TEXT).with_tags({entity: ["X", "Y"]}, {})
    assert (*entity, ["X", "Y"]) in protobuf.parse(text).tags()


def test_field_of_a_oneof_may_be_named_with_it() -> None:
    text = protobuf.parse(_TEXT).with_tags({("sr_field", "A.o.b"): ["X"]}, {})
    assert ("sr_field", "A.b", ["X"]) in protobuf.parse(text).tags()


def test_other_options_stay() -> None:
    text = protobuf.parse(_TEXT).with_tags({_FIELD: ["V"]}, {_FIELD: ["T"]})
    assert (
        '  string a = 1 [\n    (confluent.field_meta) = {\n      doc: "d",\n      tags: [\n'
        '        "U",\n        "V"\n      ]\n    },\n    deprecated = true\n  ];\n'
    ) in text


def test_option_without_content_disappears() -> None:
    text = protobuf.parse(_TEXT).with_tags({}, {("sr_record", "A"): ["M"]})
    assert "message_meta" not in text


@pytest.mark.parametrize(
    ("entity", "reason"),
    [
        (("sr_record", "B"), "No matching Message with name 'B' found in the schema"),
        (("sr_field", "A.zz"), "No matching Field with name 'zz' found in the schema"),
        (("sr_field", "A"), "No matching Field with name 'A' found in the schema"),
    ],
)
def test_unknown_entity_is_refused(entity: tuple[str, str], reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        protobuf.parse(_TEXT).with_tags({entity: ["X"]}, {})
