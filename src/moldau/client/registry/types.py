"""Schemas and answers of a registry as plain data, and their form in the REST API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.schemas.schema import Reference

LATEST = "latest"


class RegistryError(KafkaError):
    """An error answer of the registry, or no answer (`status` 0)."""

    def __init__(self, status: int, error_code: int, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        self.status = status
        #: Confluent's code, e.g. 40401: the HTTP status and two digits.
        self.error_code = error_code

    def __repr__(self) -> str:
        return f"RegistryError({self.status}, {self.error_code}, {self.message!r})"

    @property
    def not_found(self) -> bool:
        return self.status == 404


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema with its references, metadata and rules. `metadata` and `rule_set` are objects of the API."""

    text: str
    schema_type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """Return a hashable identity: equal schemas have equal keys."""
        extras = (self.metadata, self.rule_set)
        return (
            self.text,
            self.schema_type,
            self.references,
            *(json.dumps(x, sort_keys=True) for x in extras),
        )

    def body(self) -> dict[str, Any]:
        """Return the body of a request."""
        body: dict[str, Any] = {"schema": self.text}
        if self.schema_type != "AVRO":
            body["schemaType"] = self.schema_type
        if self.references:
            body["references"] = [one._asdict() for one in self.references]
        if self.metadata is not None:
            body["metadata"] = self.metadata
        if self.rule_set is not None:
            body["ruleSet"] = self.rule_set
        return body

    @classmethod
    def of(cls, answer: Mapping[str, Any], default: Schema | None = None) -> Schema:
        """Read an answer; `default` is the schema of an answer that does not repeat it."""
        if answer.get("schema") is None and default is not None:
            return default
        references = tuple(
            Reference(one["name"], one["subject"], int(one["version"]))
            for one in answer.get("references") or ()
        )
        return cls(
            answer["schema"],
            answer.get("schemaType") or "AVRO",
            references,
            answer.get("metadata"),
            answer.get("ruleSet"),
        )


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A version of a subject. Registries before 7.5 answer a registration with the id alone."""

    schema: Schema
    id: int
    subject: str
    version: int | None = None
    guid: str | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any], subject: str, default: Schema | None = None) -> RegisteredSchema:
        return cls(
            Schema.of(answer, default),
            int(answer["id"]),
            answer.get("subject") or subject,
            answer.get("version"),
            answer.get("guid"),
        )


class SubjectVersion(NamedTuple):
    subject: str
    version: int


class ContextId(NamedTuple):
    """The id of a schema in a context; the default context is `.`."""

    context: str
    id: int


class Compatibility(NamedTuple):
    """The result of a compatibility test. The messages are filled with `verbose`."""

    is_compatible: bool
    messages: list[str]


class Association(NamedTuple):
    """The subject that is bound to a resource such as a topic."""

    subject: str
    association_type: str
    lifecycle: str | None = None
