"""Tags of objects and properties: their paths, and changing them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.schemas import json as json_schemas
from moldau.schemas.schema import InvalidSchema

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "confluent:tags": ["ROOT"],
    "properties": {
        "b": {"type": "string", "confluent:tags": ["PII"]},
        "a.b": {"type": "number"},
        "choice": {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"q": {"type": "null"}}}]},
        "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
    },
    "definitions": {"D": {"type": "object", "properties": {"z": {"type": "string"}}}},
}


def _changed(added: dict[tuple[str, str], list[str]], removed: dict[tuple[str, str], list[str]]) -> Any:
    return json_schemas.parse(json_schemas.parse(json.dumps(_SCHEMA)).with_tags(added, removed))


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("sr_field", "object.list"),
        ("sr_field", "object.choice.oneof.0.object.q"),
        ("sr_record", "object.list.array.object"),
        ("sr_field", "object.list.array.object.x"),
        ("sr_field", "object.a.b"),
        ("sr_record", "object.definitions.D.object"),
        ("sr_field", "object.definitions.D.object.z"),
    ],
)
def test_added_tag_is_found_at_its_path(kind: str, path: str) -> None:
    assert (kind, path, ["T", "U"]) in _changed({(kind, path): ["T", "U", "T"]}, {}).tags()


def test_tags_are_added_before_others_are_removed() -> None:
    entity = ("sr_field", "object.b")
    changed = _changed({entity: ["T"]}, {entity: ["PII"], ("sr_record", "object"): ["ROOT"]})
    assert changed.tags() == [("sr_field", "object.b", ["T"])]


@pytest.mark.parametrize("path", ["object.unknown", "array.object.x", "object.b.object", "oneof.0", ""])
def test_unknown_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidSchema, match=f"No matching path '{path}' found in the schema"):
        _changed({("sr_field", path): ["T"]}, {})
