"""Requests that carry a schema: the body of registrations, look-ups and compatibility checks."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from moldau.http.errors import ApiError
from moldau.registry.state import contracts
from moldau.registry.state.contracts import Json
from moldau.registry.state.records import Content, references_of
from moldau.schemas.guid import guid
from moldau.schemas.schema import SchemaType

_INTEGERS: Final = 1 << 31


class SchemaRequest(NamedTuple):
    """A schema in a request; unknown fields of the body are ignored."""

    subject: str
    content: Content
    #: -1: not given. Only an import may give one.
    schema_id: int = -1
    #: 0: not given, -1: the latest.
    version: int = 0
    tags_to_add: tuple[Json, ...] = ()
    tags_to_remove: tuple[Json, ...] = ()
    propagate_tags: bool = False
    #: For messages: Confluent's show the request, and null where nothing was given.
    given_version: int | None = None
    given_id: int | None = None

    @property
    def is_empty(self) -> bool:
        return not self.content.text.strip()

    def described(self, *, given: bool) -> str:
        """Return the request as messages about an invalid schema show it: as `given`, or with defaults."""
        content = self.content
        version = _null(self.given_version) if given else self.version
        schema_id = _null(self.given_id) if given else self.schema_id
        digest = guid(content.text, content.references, content.metadata, content.rule_set)
        return (
            f"{{subject={self.subject},version={version},id={schema_id},"
            f"guid={digest},schemaType={content.schema_type},references={references_text(content)},"
            f"metadata={_null(content.metadata)},ruleSet={_null(content.rule_set)},schema={content.text},"
            "schemaTags=null,ts=null,deleted=null}"
        )


def references_text(content: Content) -> str:
    texts = (
        f"{{name='{each.name}', subject='{each.subject}', version={each.version}}}"
        for each in content.references
    )
    return f"[{', '.join(texts)}]"


def schema_request(subject: str, body: object) -> SchemaRequest:
    """Return the request of a body; `ApiError` 422 if a field has the wrong type."""
    if not isinstance(body, dict):
        raise ApiError(422, 422, "The body must be a JSON object.")
    version, schema_id = integer_field(body, "version"), integer_field(body, "id")
    return SchemaRequest(
        subject,
        Content(
            string_field(body, "schemaType") or SchemaType.AVRO.value,
            string_field(body, "schema") or "",
            _references(body),
            contracts.metadata_of(body.get("metadata")),
            contracts.rule_set_of(body.get("ruleSet")),
        ),
        -1 if schema_id is None else schema_id,
        version or 0,
        tuple(tag_changes(body, "schemaTagsToAdd")),
        tuple(tag_changes(body, "schemaTagsToRemove")),
        contracts.boolean_of(body, "propagateSchemaTags") or False,
        version,
        schema_id,
    )


def _references(body: dict[str, Any]) -> Any:
    try:
        return references_of(body.get("references"))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ApiError(422, 42201, f"Invalid reference: {body.get('references')}") from None


def string_field(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise ApiError(422, 422, f"{name} must be a string.")
    return value


def integer_field(body: dict[str, Any], name: str) -> int | None:
    value = body.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ApiError(422, 422, f"{name} must be an integer.")
    if value is not None and not -_INTEGERS <= value < _INTEGERS:
        raise ApiError(422, 422, f"{name} must be an integer of 32 bits.")
    return value


def strings_field(body: dict[str, Any], name: str) -> list[str]:
    value = body.get(name) or []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ApiError(422, 422, f"{name} must be a list of strings.")
    return value


def tag_changes(body: dict[str, Any], name: str) -> list[Json]:
    value = body.get(name) or []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ApiError(422, 422, f"{name} must be a list of JSON objects.")
    return value


def _null(value: object) -> object:
    return "null" if value is None else value
