"""The published compatibility cases and GUIDs of Confluent's registry, and the cases of Karapace."""

from __future__ import annotations

import pytest

from moldau.schemas.guid import guid
from moldau.schemas.json.diff import kinds
from moldau.schemas.json.diff.compare import compare
from moldau.schemas.json.schema import JsonSchema
from moldau.schemas.protobuf import ProtobufSchema
from moldau.schemas.schema import ParsedSchema, Reference, SchemaType, parse
from tests.interop.schemas.cases import (
    CONFLUENT,
    KARAPACE,
    Case,
    KarapaceCase,
    Repository,
    confluent_cases,
    golden_guids,
    karapace_cases,
)

pytestmark = pytest.mark.interop

#: Where the two registries disagree, Confluent's decision counts: what is expected here is the opposite.
_CONFLUENT_DECIDES_OTHERWISE = frozenset(
    {
        "A_INT_B_INT_REQUIRED_OBJECT_SCHEMA does not read FALSE_SCHEMA",
        "A_INT_OBJECT_SCHEMA does not read FALSE_SCHEMA",
        "A_OBJECT_SCHEMA does not read OBJECT_SCHEMA",
        "A_OBJECT_SCHEMA does not read PROPERTY_NAMES_ASTAR_OBJECT_SCHEMA",
        "FALSE_SCHEMA reads TRUE_SCHEMA",
        "NOT_OF_EMPTY_SCHEMA does not read FALSE_SCHEMA",
        "NOT_OF_TRUE_SCHEMA does not read FALSE_SCHEMA",
        "PATTERN_PROPERTY_ASTAR_OBJECT_SCHEMA does not read B_INT_OBJECT_SCHEMA",
        "TRUE_SCHEMA does not read NOT_OF_EMPTY_SCHEMA",
        "TRUE_SCHEMA does not read NOT_OF_TRUE_SCHEMA",
    }
)

_needs_confluent = pytest.mark.skipif(
    not Repository(CONFLUENT).exists, reason=f"{CONFLUENT} names no copy of confluentinc/schema-registry"
)
_needs_karapace = pytest.mark.skipif(
    not Repository(KARAPACE).exists, reason=f"{KARAPACE} names no copy of Aiven-Open/karapace"
)


def _changes(new: ParsedSchema, old: ParsedSchema) -> list[str]:
    if isinstance(new, JsonSchema) and isinstance(old, JsonSchema):
        return [f"{kind} {path}" for kind, path in compare(old.root, new.root, kinds.STRICT).all()]
    assert isinstance(new, ProtobufSchema)
    assert isinstance(old, ProtobufSchema)
    return [f"{found.kind} {found.path}" for found in new.differences(old)]


@_needs_confluent
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in confluent_cases()])
def test_confluent_case(case: Case) -> None:
    old = parse(case.schema_type, case.previous, case.previous_references)
    new = parse(case.schema_type, case.current, case.current_references)
    assert _changes(new, old) == case.changes
    assert (new.incompatibilities(old) == []) is case.compatible
    assert (new.incompatibilities(old, lenient=True) == []) is case.compatible_lenient


@_needs_confluent
def test_all_confluent_cases_are_read() -> None:
    """A case that is not found would be one that is not tested."""
    assert len(list(confluent_cases())) >= 318


@_needs_karapace
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in karapace_cases()])
def test_karapace_case(case: KarapaceCase) -> None:
    found = parse("JSON", case.reader).incompatibilities(parse("JSON", case.writer))
    expected = not case.compatible if case.name in _CONFLUENT_DECIDES_OTHERWISE else case.compatible
    assert (found == []) is expected


@_needs_confluent
@pytest.mark.parametrize("schema_type", SchemaType)
def test_guids_of_schemas_with_references_metadata_and_rules(schema_type: SchemaType) -> None:
    data = golden_guids()
    references = [Reference(each["name"], each["subject"], each["version"]) for each in data["references"]]
    text = data["schemas"][schema_type.lower()]
    found = {}
    for key in data["expectedHashes"][schema_type]:
        has_references, has_metadata, has_rules = (flag == "1" for flag in key)
        found[key] = guid(
            text,
            references if has_references else (),
            data["metadata"] if has_metadata else None,
            data["rules"] if has_rules else None,
        )
    assert found == data["expectedHashes"][schema_type]
    assert len(found) == 8
