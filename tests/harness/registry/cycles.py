"""Schemas of all types that refer to each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """A type of schemas."""

    #: Returns a schema of a name that uses no other.
    plain: Callable[[str], str]
    #: Returns a schema of the first name that uses the second.
    text: Callable[[str, str], str]
    suffix: str


def _avro(name: str, other: str) -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": "f", "type": ["null", other]}]})


def _json(name: str, other: str) -> str:
    return json.dumps({"type": "object", "title": name, "properties": {"f": {"$ref": f"{other}.json"}}})


def _protobuf(name: str, other: str) -> str:
    return f'syntax = "proto3"; import "{other}.proto"; message {name} {{ {other} f = 1; }}'


KINDS = {
    "AVRO": Kind(lambda name: json.dumps({"type": "record", "name": name, "fields": []}), _avro, ""),
    "JSON": Kind(lambda name: json.dumps({"type": "object", "title": name}), _json, ".json"),
    "PROTOBUF": Kind(lambda name: f'syntax = "proto3"; message {name} {{}}', _protobuf, ".proto"),
}


def request(kind: str, name: str, other: str) -> dict[str, Any]:
    """Return the body that registers a schema which refers to version 1 of the subject `other`."""
    reference = {"name": other + KINDS[kind].suffix, "subject": other, "version": 1}
    return {"schema": KINDS[kind].text(name, other), "schemaType": kind, "references": [reference]}
