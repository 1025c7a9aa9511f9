"""Confluent's and Karapace's published compatibility cases, read from where they are on this machine.

The cases are not part of the project: `MOLDAU_CONFLUENT_CASES` and `MOLDAU_KARAPACE_CASES` name a checkout or
a bare Git directory of confluentinc/schema-registry and Aiven-Open/karapace.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

CONFLUENT, KARAPACE = "MOLDAU_CONFLUENT_CASES", "MOLDAU_KARAPACE_CASES"

_JSON_RESOURCES = "json-schema-provider/src/test/resources/"
_PROTOBUF_RESOURCES = "protobuf-provider/src/test/resources/"
_KARAPACE_JSON = "tests/unit/compatibility/jsonschema/test_jsonschema_compatibility.py"
_KARAPACE_SCHEMAS = "tests/schemas/json_schemas.py"
_KARAPACE_CHECKS = {"schemas_are_compatible": True, "not_schemas_are_compatible": False}
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")


class Case(NamedTuple):
    """Two schemas and what Confluent's registry finds between them."""

    name: str
    schema_type: str
    previous: str
    current: str
    previous_references: dict[str, str]
    current_references: dict[str, str]
    changes: list[str]
    compatible: bool
    compatible_lenient: bool


class Repository:
    """The files of a repository, from a checkout or a Git directory."""

    def __init__(self, variable: str) -> None:
        self._folder = Path(os.environ.get(variable, "/nonexistent"))

    @property
    def exists(self) -> bool:
        return self._folder.is_dir()

    def read(self, path: str) -> str | None:
        """Return a file, None if there is none of this path."""
        file = self._folder / path
        if file.is_file():
            return file.read_text(encoding="utf-8")
        shown = subprocess.run(
            ["git", "-C", str(self._folder), "show", f"HEAD:{path}"], capture_output=True, check=False
        )
        return shown.stdout.decode() if shown.returncode == 0 else None


def confluent_cases() -> Iterator[Case]:
    """Yield the cases of the two providers."""
    repository = Repository(CONFLUENT)
    if not repository.exists:
        return
    for name in ("diff-schema-examples", "diff-combined-schema-examples"):
        for suffix in ("", "-2020-12"):
            for index, case in enumerate(_cases_of(repository, f"{_JSON_RESOURCES}{name}{suffix}.json")):
                yield _json_case(f"{name}{suffix} {index}", case)
    for name in ("diff-schema-examples", "diff-schema-examples-with-meta"):
        for index, case in enumerate(_cases_of(repository, f"{_PROTOBUF_RESOURCES}{name}.json")):
            yield _protobuf_case(repository, f"protobuf {name} {index}", case)


def _cases_of(repository: Repository, path: str) -> list[dict[str, Any]]:
    text = repository.read(path)
    if text is None:
        return []
    cases: list[dict[str, Any]] = json.loads(_TRAILING_COMMA.sub(r"\1", text))
    return cases


def _json_case(name: str, case: dict[str, Any]) -> Case:
    return Case(
        f"{name}: {case['description']}",
        "JSON",
        json.dumps(case["original_schema"]),
        json.dumps(case["update_schema"]),
        {},
        {},
        case["changes"],
        case["compatible"],
        case.get("compatible_lenient", case["compatible"]),
    )


def _protobuf_case(repository: Repository, name: str, case: dict[str, Any]) -> Case:
    return Case(
        f"{name}: {case['description']}",
        "PROTOBUF",
        _proto(repository, case["original_schema"]),
        _proto(repository, case["update_schema"]),
        _dependencies(repository, case, "original"),
        _dependencies(repository, case, "update"),
        case["changes"],
        case["compatible"],
        case["compatible"],
    )


def _proto(repository: Repository, text: str) -> str:
    return (repository.read(_PROTOBUF_RESOURCES + text) or "") if text.endswith(".proto") else text


def _dependencies(repository: Repository, case: dict[str, Any], role: str) -> dict[str, str]:
    """Return the referenced files; files without a text are built in."""
    found = {}
    for dependency in case.get(f"{role}_dependencies", ()):
        text = dependency.get("dependency") or repository.read(_PROTOBUF_RESOURCES + dependency["name"])
        if text is not None:
            found[dependency["name"]] = text
    return found


def golden_guids() -> dict[str, Any]:
    """Return the schemas, references, metadata and rules whose GUIDs are published, with the GUIDs."""
    text = Repository(CONFLUENT).read("core/src/test/resources/schema-md5-golden-data.json")
    assert text is not None
    data: dict[str, Any] = json.loads(text)
    return data


class KarapaceCase(NamedTuple):
    """Two JSON schemas and whether Karapace lets the reader read the writer's data."""

    name: str
    reader: str
    writer: str
    compatible: bool


def karapace_cases() -> Iterator[KarapaceCase]:
    """Yield the pairs of its tests of JSON Schema, which name the schemas of another module."""
    repository = Repository(KARAPACE)
    tests, module = repository.read(_KARAPACE_JSON), repository.read(_KARAPACE_SCHEMAS)
    if not repository.exists or tests is None or module is None:
        return
    schemas = _json_schemas(module)
    for call in (node for node in ast.walk(ast.parse(tests)) if isinstance(node, ast.Call)):
        names = {key.arg: key.value.id for key in call.keywords if isinstance(key.value, ast.Name)}
        reader, writer = names.get("reader", ""), names.get("writer", "")
        compatible = _KARAPACE_CHECKS.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if compatible is not None and {reader, writer} <= schemas.keys():
            name = f"{reader} {'reads' if compatible else 'does not read'} {writer}"
            yield KarapaceCase(name, schemas[reader], schemas[writer], compatible)


def _json_schemas(module: str) -> dict[str, str]:
    """Return the texts that are parsed to the schemas of a module, by name."""
    found = {}
    for node in ast.parse(module).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            texts = [
                each.value
                for each in ast.walk(node.value)
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            ]
            if len(texts) == 1:
                found[node.targets[0].id] = texts[0]
    return found
