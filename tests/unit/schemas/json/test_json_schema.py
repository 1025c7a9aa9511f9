"""The canonical text, the normalized text and the validity of JSON schemas."""

from __future__ import annotations

import pytest

from moldau.schemas import json as json_schemas
from moldau.schemas.schema import InvalidSchema, parse


@pytest.mark.parametrize(
    ("text", "canonical", "normalized"),
    [
        ('{ "b" : 1, "a" : [ ] }', '{"b":1,"a":[]}', '{"a":[],"b":1}'),
        ('{"a":1.10,"b":1e5,"c":-0}', '{"a":1.10,"b":1E+5,"c":0}', '{"a":1.10,"b":1E+5,"c":0}'),
        ('{"a":"\\u00e9\\/\\u001F"}', '{"a":"é/\\u001F"}', '{"a":"é/\\u001F"}'),
        ('{"a":1,"a":2}', '{"a":2}', '{"a":2}'),
        ('{"a":1} trailing', '{"a":1}', '{"a":1}'),
        ("true", "true", "true"),
    ],
)
def test_texts(text: str, canonical: str, normalized: str) -> None:
    schema = json_schemas.parse(text)
    assert (schema.canonical, schema.normalized().canonical) == (canonical, normalized)


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"unknown"}',
        '{"type":5}',
        '{"required":"a"}',
        '{"properties":[]}',
        '{"minLength":1.5}',
        '{"pattern":"("}',
        '{"multipleOf":0}',
        '{"$ref":"#/definitions/missing"}',
        '{"$ref":"http://example.com/never-fetched"}',
        '{"$schema":"https://json-schema.org/draft/2020-12/schema","$ref":"#missing"}',
        "[]",
        "5",
    ],
)
def test_invalid_schema_is_refused_when_it_is_validated(text: str) -> None:
    with pytest.raises(InvalidSchema):
        json_schemas.parse(text).validate(strict=False)


@pytest.mark.parametrize("text", ["{", '{"a":}', "{'a':1}", '{"a":01}', '{"a":"\t"}', ""])
def test_text_that_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        json_schemas.parse(text)


def test_references_in_a_circle_are_valid() -> None:
    text = '{"properties":{"a":{"$ref":"#/properties/b"},"b":{"$ref":"#/properties/a"}}}'
    schema = json_schemas.parse(text)
    schema.validate(strict=False)
    assert schema.incompatibilities(json_schemas.parse(text)) == []


@pytest.mark.parametrize("schema_type", ["AVRO", "JSON"])
def test_unpaired_surrogate_is_refused(schema_type: str) -> None:
    with pytest.raises(InvalidSchema, match="surrogate"):
        parse(schema_type, '{"type":"string","x":"\\ud800"}')


@pytest.mark.parametrize(("title", "name"), [('"T"', "T"), ("5", "5"), ("null", "null"), ("{}", "")])
def test_name_is_the_title_as_text(title: str, name: str) -> None:
    assert json_schemas.parse(f'{{"title":{title}}}').name == name
