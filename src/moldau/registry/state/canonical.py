"""The content that a request stands for: parsed, checked, and with its canonical or normalized text."""

from __future__ import annotations

from moldau.http.errors import ApiError
from moldau.registry.state import errors
from moldau.registry.state.contracts import Json
from moldau.registry.state.records import Content
from moldau.registry.state.registry import MissingReference, Registry, memory_of
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
    if content.references:
        # What references stand for can change.
        return _canonicalize(registry, request, new, normalize, strict, importing)
    key = (content.schema_type, content.text, new, normalize, strict, importing)
    found: tuple[str, ParsedSchema] | None = registry.canonical.get(key)
    if found is None:
        result, parsed = _canonicalize(registry, request, new, normalize, strict, importing)
        registry.canonical.put(key, (result.text, parsed), memory_of(content))
        return result, parsed
    return content._replace(text=found[0], references=()), found[1]


def _canonicalize(
    registry: Registry, request: SchemaRequest, new: bool, normalize: bool, strict: bool, importing: bool
) -> tuple[Content, ParsedSchema]:
    content = request.content
    try:
        parsed, references = registry.parse(request.subject, content, new=new)
        if new and not importing:
            parsed.validate(strict)
    except InvalidSchema as error:
        raise _unparsable(request, error) from None
    if importing:
        return content._replace(text=parsed.canonical, references=references), parsed
    try:
        if strict and not new:
            parsed.validate(strict)
        if normalize:
            parsed = parsed.normalized()
            references = tuple(sorted(set(references)))
    except InvalidSchema as error:
        raise errors.invalid_schema(
            f"Invalid schema {request.described(given=False)}, details: {error}"
        ) from None
    return content._replace(text=parsed.canonical, references=references), parsed


def _unparsable(request: SchemaRequest, error: InvalidSchema) -> ApiError:
    """Return the error in Confluent's words, which depend on the parser of the language."""
    schema_type = request.content.schema_type
    if schema_type == SchemaType.JSON and not isinstance(error, MissingReference):
        return errors.invalid_schema(f"Invalid schema {request.described(given=False)}, details: {error}")
    shown = f"{request.described(given=True)} with refs {references_text(request.content)}"
    return errors.invalid_schema(
        f"Invalid schema of type {schema_type}, details: Invalid schema {shown} of type {schema_type}, "
        f"details: {error}"
    )
