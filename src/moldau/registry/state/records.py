"""Records of the topic `_schemas`: keys and values, byte for byte as Confluent writes them.

Compaction compares the bytes of keys, so the order of their fields matters. Decoding accepts any order, and
fields that this version does not know.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final, NamedTuple

from moldau.schemas.schema import Reference, SchemaType

SCHEMA: Final = "SCHEMA"
CONFIG: Final = "CONFIG"
MODE: Final = "MODE"
NOOP: Final = "NOOP"
DELETE_SUBJECT: Final = "DELETE_SUBJECT"
CLEAR_SUBJECT: Final = "CLEAR_SUBJECT"
CONTEXT: Final = "CONTEXT"
ASSOCIATION: Final = "ASSOC"
_TENANT: Final = "default"
_MAX_VERSION: Final = (1 << 31) - 1

Json = dict[str, Any]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


class KeyValue(NamedTuple):
    """A record to append; no value is a tombstone."""

    key: bytes
    value: bytes | None


class DamagedRecord(Exception):
    """A record that is not one of a schema registry."""


class Content(NamedTuple):
    """The part of a schema that its id stands for."""

    schema_type: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Json | None = None
    rule_set: Json | None = None


def encode(value: object) -> bytes:
    """Return compact JSON in UTF-8, as Jackson writes it."""
    return _encode(value).encode("utf-8", "surrogatepass")


def decode(data: bytes) -> Json:
    try:
        value = _decode(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise DamagedRecord(f"{data[:80]!r} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise DamagedRecord(f"{data[:80]!r} is not a JSON object")
    return value


def schema_key(subject: str, version: int) -> bytes:
    return encode({"keytype": SCHEMA, "subject": subject, "version": version, "magic": 1})


def subject_key(keytype: str, subject: str | None) -> bytes:
    """Return the key of a CONFIG, MODE, DELETE_SUBJECT or CLEAR_SUBJECT record."""
    named = {} if subject is None else {"subject": subject}
    return encode({"keytype": keytype, **named, "magic": 0})


def context_record(context: str) -> KeyValue:
    key = {"keytype": CONTEXT, "tenant": _TENANT, "context": context, "magic": 0}
    return KeyValue(encode(key), encode({"tenant": _TENANT, "context": context}))


def context_tombstone(context: str) -> KeyValue:
    return KeyValue(context_record(context).key, None)


def schema_record(subject: str, version: int, schema_id: int, content: Content, deleted: bool) -> KeyValue:
    value: Json = {"subject": subject, "version": version, "id": schema_id, "schemaType": content.schema_type}
    value.update(contract_fields(content))
    value["schema"] = content.text
    value["deleted"] = deleted
    return KeyValue(schema_key(subject, version), encode(value))


def schema_tombstone(subject: str, version: int) -> KeyValue:
    return KeyValue(schema_key(subject, version), None)


def setting_record(keytype: str, subject: str | None, value: Json) -> KeyValue:
    """Return a CONFIG or MODE record."""
    named = {} if subject is None else {"subject": subject}
    return KeyValue(subject_key(keytype, subject), encode({**named, **value}))


def setting_tombstone(keytype: str, subject: str | None) -> KeyValue:
    return KeyValue(subject_key(keytype, subject), None)


def delete_subject_record(subject: str, version: int) -> KeyValue:
    return KeyValue(subject_key(DELETE_SUBJECT, subject), encode({"subject": subject, "version": version}))


def clear_subject_record(subject: str | None) -> KeyValue:
    named = {} if subject is None else {"subject": subject}
    return KeyValue(subject_key(CLEAR_SUBJECT, subject), encode(named))


def association_key(association: Json) -> bytes:
    fields = ("resourceName", "resourceNamespace", "resourceType", "associationType", "subject")
    named = {field: association[field] for field in fields}
    return encode({"keytype": ASSOCIATION, "tenant": _TENANT, **named, "magic": 0})


def association_record(association: Json) -> KeyValue:
    before = ("resourceName", "resourceNamespace", "resourceId", "resourceType", "associationType", "subject")
    value = {"guid": association["guid"], "tenant": _TENANT}
    value.update({field: association[field] for field in before})
    value.update(lifecycle=association["lifecycle"], frozen=association["frozen"])
    return KeyValue(association_key(association), encode(value))


def association_tombstone(association: Json) -> KeyValue:
    return KeyValue(association_key(association), None)


def contract_fields(content: Content) -> Json:
    """Return references, metadata and rules for JSON; missing ones are left out."""
    fields: Json = {}
    if content.references:
        fields["references"] = [reference._asdict() for reference in content.references]
    if content.metadata is not None:
        fields["metadata"] = content.metadata
    if content.rule_set is not None:
        fields["ruleSet"] = content.rule_set
    return fields


def references_of(value: object) -> tuple[Reference, ...]:
    """Return references of a request or record."""
    if not value:
        return ()
    if not isinstance(value, list):
        raise ValueError("references must be a list")
    references = tuple(Reference(str(e["name"]), str(e["subject"]), int(e["version"])) for e in value)
    if any(abs(each.version) > _MAX_VERSION for each in references):
        raise ValueError("the version of a reference must be an integer of 32 bits")
    return references


def content_of(value: Json) -> Content:
    """Return the content of a SCHEMA value."""
    try:
        return Content(
            sys.intern(value.get("schemaType") or SchemaType.AVRO.value),
            value["schema"],
            references_of(value.get("references")),
            value.get("metadata"),
            value.get("ruleSet"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedRecord(f"A SCHEMA record has no valid schema: {error!r}") from None
