"""The message declarations, compared with the definitions in Kafka's jars, field by field."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from moldau.protocol.apis import APIS, api_by_name
from moldau.protocol.fields import FRESH, Field, StructType, Versions
from moldau.protocol.json_form import json_name
from tests.wire.catalog import all_messages

pytestmark = pytest.mark.interop

#: Headers and producer snapshots are written by hand.
NOT_DECLARED = re.compile(r"^(Request|Response)Header$|^ProducerSnapshot$")
IMPLICIT_DEFAULTS = {"bool": False, "string": "", "bytes": b"", "uuid": bytes(16)}


OURS = all_messages()
Definitions = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def definitions(libs: Path) -> Definitions:
    """Return the definitions in all jars by name."""
    found = {}
    for jar in sorted(libs.glob("kafka*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if re.fullmatch(r"(common/)?(message|metadata)/\w+\.json", name):
                    text = re.sub(r"^\s*//.*$|\s//\s.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                    definition = json.loads(text)
                    found[definition["name"]] = definition
    return found


def test_declared_messages_are_exactly_kafkas(definitions: Definitions) -> None:
    declared = {
        name
        for name, definition in definitions.items()
        if definition["validVersions"] != "none" and not NOT_DECLARED.match(name)
    }
    assert len(declared) > 200
    assert set(OURS) == declared


def test_api_table_equals_kafkas(definitions: Definitions) -> None:
    served = [d for d in definitions.values() if d["type"] == "request" and d["validVersions"] != "none"]
    assert {d["apiKey"] for d in served} == set(APIS)
    for definition in served:
        api = api_by_name[definition["name"].removesuffix("Request")]
        flexible = Versions.parse(definition["flexibleVersions"])
        assert api.key == definition["apiKey"]
        assert Versions(api.min_version, api.max_version) == Versions.parse(definition["validVersions"])
        assert api.flexible_from == (None if flexible.first > flexible.last else flexible.first)
        assert api.listeners == set(definition["listeners"])
        assert api.latest_unstable == definition.get("latestVersionUnstable", False)
        assert (api.request.__name__, api.response.__name__) == (f"{api.name}Request", f"{api.name}Response")


@pytest.mark.parametrize("name", sorted(OURS))
def test_declaration_equals_kafkas_definition(name: str, definitions: Definitions) -> None:
    definition, ours = definitions[name], OURS[name]
    assert Versions.parse(definition["validVersions"]) == ours.VERSIONS
    assert Versions.parse(definition["flexibleVersions"]) == ours.FLEXIBLE
    assert definition.get("apiKey", -1) == ours.API_KEY
    structs = {struct["name"]: struct for struct in definition.get("commonStructs", [])}
    compare_fields(definition["fields"], ours, structs)


def compare_fields(theirs: list[dict[str, Any]], ours: StructType, structs: dict[str, Any]) -> None:
    names = [field["name"][0].lower() + field["name"][1:] for field in theirs]
    assert [json_name(field.name) for field in ours.FIELDS] == names
    for definition, field in zip(theirs, ours.FIELDS, strict=True):
        compare_field(definition, field, structs)


def compare_field(definition: dict[str, Any], field: Field, structs: dict[str, Any]) -> None:
    tagged = definition.get("taggedVersions")
    base = definition["type"].removeprefix("[]")
    assert field.is_array == definition["type"].startswith("[]")
    assert field.versions == Versions.parse(definition.get("versions", tagged))
    assert field.tagged == Versions.parse(tagged)
    assert field.tag == definition.get("tag")
    assert field.nullable == Versions.parse(definition.get("nullableVersions"))
    assert field.ignorable == definition.get("ignorable", False)
    assert field.default == expected_default(definition, base), field
    if isinstance(field.type, StructType):
        nested = definition["fields"] if definition.get("fields") else structs[base]["fields"]
        compare_fields(nested, field.type, structs)
    else:
        assert field.type.__name__ == base


def expected_default(definition: dict[str, Any], base: str) -> Any:
    default = definition.get("default")
    if default == "null":  # The string "null"; a JSON null means that there is no default.
        return None
    if definition["type"].startswith("[]") or base[0].isupper():
        return FRESH
    if base == "records":
        return None
    if default is None:
        return IMPLICIT_DEFAULTS.get(base, 0)
    if base == "bool":
        return str(default).lower() == "true"
    if base in ("string", "bytes", "uuid"):
        return default
    return int(str(default), 0)
