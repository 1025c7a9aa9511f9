"""The content that a request stands for: parsed, checked, and with its canonical or normalized text."""

from __future__ import annotations

from moldau.registry.state import errors
from moldau.registry.state.contracts import Json
from moldau.registry.state.records import Content
from moldau.registry.state.registry import Registry
from moldau.registry.state.requests import SchemaRequest, references_text
from moldau.schemas.schema import InvalidSchema, ParsedSchema, SchemaType

#: In these modes schemas are taken over from another registry as they are.
IMPORT_MODES = frozenset({"IMPORT", "FORWARD"})


def canonicalize(
    registry: Registry, request: SchemaRequest, config: Json, *, new: bool, normalize: bool
) -> tuple[Content, ParsedSchema]:
    """Return what would be stored; error 42201 if the schema is not valid."""
    content = request.content
    if content.schema_type not in SchemaType.__members__:
        raise errors.invalid_schema(f"Invalid schema type {content.schema_type}")
    importing = registry.mode(request.subject) in IMPORT_MODES
    strict = bool(config.get("validateFields", registry.settings.validate_fields))
    try:
        parsed, references = registry.parse(request.subject, content, new=new)
        if new and not importing:
            parsed.validate(strict)
    except InvalidSchema as error:
        raise errors.invalid_schema(
            f"Invalid schema of type {content.schema_type}, details: Invalid schema {request.described()} "
            f"with refs {references_text(content)} of type {content.schema_type}, details: {error}"
        ) from None
    if importing:
        return content._replace(text=parsed.canonical, references=references), parsed
    try:
        if strict and not new:
            parsed.validate(strict)
        if normalize:
            parsed = parsed.normalized()
            references = tuple(sorted(set(references)))
    except InvalidSchema as error:
        raise errors.invalid_schema(f"Invalid schema {request.described()}, details: {error}") from None
    return content._replace(text=parsed.canonical, references=references), parsed
