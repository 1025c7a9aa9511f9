"""Schemas that refer to each other, which a topic may have because other programs wrote it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.unit.registry.memory_log import MemoryLog
from tests.unit.registry.requests import TestRegistry, on_a_loop


class Kind(NamedTuple):
    #: Returns a schema of the first name that uses the second.
    text: Callable[[str, str], str]
    suffix: str


def _avro(name: str, other: str) -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": "f", "type": ["null", other]}]})


def _json(name: str, other: str) -> str:
    return json.dumps({"type": "object", "title": name, "properties": {"f": {"$ref": f"{other}.json"}}})


def _protobuf(name: str, other: str) -> str:
    return f'syntax = "proto3"; import "{other}.proto"; message {name} {{ {other} f = 1; }}'


KINDS = {"AVRO": Kind(_avro, ""), "JSON": Kind(_json, ".json"), "PROTOBUF": Kind(_protobuf, ".proto")}


def request(kind: str, name: str, other: str) -> dict[str, Any]:
    reference = {"name": other + KINDS[kind].suffix, "subject": other, "version": 1}
    return {"schema": KINDS[kind].text(name, other), "schemaType": kind, "references": [reference]}


def record(kind: str, number: int, name: str, other: str) -> tuple[bytes, bytes]:
    key = {"keytype": "SCHEMA", "subject": name, "version": 1, "magic": 1}
    value = {"subject": name, "version": 1, "id": number, **request(kind, name, other), "deleted": False}
    return json.dumps(key, separators=(",", ":")).encode(), json.dumps(value).encode()


#: Method, path, names of the schema and of the one it uses, and the statuses of the types.
REQUESTS = [
    ("GET", "/subjects/A/versions/1", None, (200, 200, 200)),
    ("GET", "/subjects/A/versions/1?format=resolved", None, (422, 200, 200)),
    ("GET", "/subjects/A/versions/1?format=serialized", None, (422, 200, 422)),
    ("GET", "/schemas/ids/2?format=resolved", None, (422, 200, 200)),
    ("GET", "/subjects/A/versions/1/referencedby", None, (200, 200, 200)),
    ("POST", "/subjects/A", ("A", "B"), (422, 404, 404)),
    ("POST", "/compatibility/subjects/A/versions?verbose=true", ("A", "B"), (200, 200, 200)),
    ("POST", "/subjects/C/versions", ("C", "A"), (422, 200, 200)),
    ("POST", "/subjects/A/versions", ("A", "B"), (422, 200, 200)),
    ("DELETE", "/subjects/A/versions/1", None, (422, 422, 422)),
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_request_is_answered(kind: str) -> None:
    @on_a_loop
    async def check() -> None:
        log = MemoryLog()
        log.records = [record(kind, 1, "A", "B"), record(kind, 2, "B", "A")]
        registry = await TestRegistry(log, compatibility_level="FULL_TRANSITIVE").start()
        for method, path, names, statuses in REQUESTS:
            body = None if names is None else request(kind, *names)
            answer = await registry.ask(method, path, body)
            expected = statuses[list(KINDS).index(kind)]
            assert (path, answer.status) == (path, expected), answer.body
        refused = await registry.ask("DELETE", "/subjects/A")
        assert refused.json["error_code"] == 42206

    check()
