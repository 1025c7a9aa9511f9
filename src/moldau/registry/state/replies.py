"""Schemas in replies, with the fields in Confluent's order."""

from __future__ import annotations

from moldau.registry.state.records import Content, Json, contract_fields
from moldau.registry.state.store import Version
from moldau.schemas.guid import guid


def content_guid(content: Content) -> str:
    return guid(content.text, content.references, content.metadata, content.rule_set)


def registered(version: int, schema_id: int, content: Content, text: str | None = None) -> Json:
    """The reply to a registration."""
    return {
        "id": schema_id,
        "version": version,
        "guid": content_guid(content),
        "schemaType": content.schema_type,
        **contract_fields(content),
        "schema": content.text if text is None else text,
    }


def with_subject(
    subject: str, version: int, schema_id: int, content: Content, text: str | None = None
) -> Json:
    """A schema as a version of its subject, without the time: the reply to a look-up by its content."""
    fields = registered(version, schema_id, content, text)
    rules = fields.pop("ruleSet", None)
    del fields["version"]
    reply = {"subject": subject, "version": version, **fields}
    return reply if rules is None else {**reply, "ruleSet": rules}


def of_version(subject: str, version: Version, text: str | None = None) -> Json:
    """A stored version."""
    reply = with_subject(subject, version.number, version.schema_id, version.content, text)
    rules = reply.pop("ruleSet", None)
    reply["ts"] = version.timestamp
    reply["deleted"] = version.deleted
    return reply if rules is None else {**reply, "ruleSet": rules}


def of_id(subject: str | None, version: Version, text: str | None = None, max_id: int | None = None) -> Json:
    """A schema requested by its id."""
    content = version.content
    reply: Json = {} if subject is None else {"subject": subject, "version": version.number}
    reply.update(
        guid=content_guid(content),
        schemaType=content.schema_type,
        schema=content.text if text is None else text,
        **contract_fields(content),
    )
    if max_id is not None:
        reply["maxId"] = max_id
    reply["ts"] = version.timestamp
    reply["deleted"] = version.deleted
    return reply
