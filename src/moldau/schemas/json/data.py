"""Validation of JSON values against a parsed schema, for serializers and the REST proxy.

The library `jsonschema` validates. References are resolved from the documents of the schema, never from a
network, and regular expressions are evaluated by RE2; an expression that RE2 does not support is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema import validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator as Library
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from moldau.schemas.json import documents, text
from moldau.schemas.json.patterns import Pattern, PatternError
from moldau.schemas.json.schema import JsonSchema
from moldau.schemas.schema import InvalidSchema

_LIBRARY = {
    documents.DRAFT_4: (validators.Draft4Validator, DRAFT4),
    documents.DRAFT_6: (validators.Draft6Validator, DRAFT6),
    documents.DRAFT_7: (validators.Draft7Validator, DRAFT7),
    documents.DRAFT_2019_09: (validators.Draft201909Validator, DRAFT201909),
    documents.DRAFT_2020_12: (validators.Draft202012Validator, DRAFT202012),
}
#: The URI of a schema without `$id`, as in Confluent's registry.
_ROOT = "mem://input"
_MAX_VALUE_CHARS = 200


class Validator:
    """Validates values against one schema; built once, used for many values."""

    def __init__(self, schema: JsonSchema) -> None:
        """Raise `InvalidSchema` if the schema is not valid."""
        schema.validate(strict=False)
        draft = documents.draft_of(schema.document)
        library, specification = _LIBRARY[draft]
        registry: Registry[Any] = Registry(retrieve=_metaschema)  # type: ignore[call-arg]
        root = schema.documents.root
        base = root.base or _ROOT
        for name, source in schema.references.items():
            resource = specification.create_resource(text.read(source))
            for uri in dict.fromkeys((name, documents.join(base, name), resource.id())):
                if uri is not None:
                    registry = registry.with_resource(uri, resource)
        contents = root.json
        if isinstance(contents, dict) and draft.id_keyword not in contents:
            contents = {draft.id_keyword: _ROOT, **contents}
        extend: Any = validators.extend
        bounded = extend(library, {"pattern": _pattern, "patternProperties": _pattern_properties})
        self._validator: Library = bounded(contents, registry=registry)

    def check(self, value: Any) -> str | None:
        """Return the first error with its path, None if the value is valid."""
        try:
            error = next(iter(self._validator.iter_errors(value)), None)
        except Unresolvable as unresolvable:
            return f"Unresolvable $ref '{unresolvable.ref}'"
        except RecursionError:
            return "#: the value or the schema is nested too deeply"
        if error is None:
            return None
        path = "".join(f"/{segment}" for segment in error.absolute_path)
        message = error.message
        return f"#{path}: {message if len(message) <= _MAX_VALUE_CHARS else message[:_MAX_VALUE_CHARS] + '…'}"


def _metaschema(uri: str) -> Resource[Any]:
    """Return the metaschema of a draft; any other document is unknown."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
    from referencing.exceptions import NoSuchResource

    resource: Resource[Any] | None = REGISTRY.get(uri)
    if resource is None:
        raise NoSuchResource(uri)
    return resource


def _found(expression: str, value: str) -> bool | None:
    """Return whether an expression matches; None if it cannot be evaluated."""
    try:
        pattern = Pattern(expression)
    except PatternError as error:
        raise InvalidSchema(f"'{expression}' is not a regular expression") from error
    return pattern.found_in(value) if pattern.evaluated else None


def _pattern(validator: Any, expression: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and _found(expression, instance) is False:
        yield ValidationError(f"{instance!r} does not match {expression!r}")


def _pattern_properties(
    validator: Any, properties: dict[str, Any], instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    for expression, inner in properties.items():
        for name, value in instance.items():
            if _found(expression, name):
                yield from validator.descend(value, inner, path=name, schema_path=expression)
