"""JSON text by a JSON Schema: the value is validated, the schema does not change the bytes.

References are resolved by their names in the given texts, never over the network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin

from jsonschema import SchemaError, ValidationError
from jsonschema.validators import validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, specification_with

from moldau.client.serdes import SerializationError


class JsonSchemaCodec:
    def __init__(self, text: str, references: Mapping[str, str] | None = None) -> None:
        try:
            #: The schema as data: an object, or true or false.
            self.schema: Any = json.loads(text)
            others = {name: json.loads(other) for name, other in (references or {}).items()}
        except (ValueError, RecursionError) as error:
            raise SerializationError(f"the JSON Schema is not JSON: {error}") from error
        kind = validator_for(self.schema)
        #: All schemas that references reach, by name and by the URI that the schema's `$id` makes of it.
        self.registry: Registry[Any] = Registry().with_resources(
            (uri, _resource(other)) for name, other in others.items() for uri in _uris(self.schema, name)
        )
        self._validator = kind(self.schema, registry=self.registry)

    @property
    def name(self) -> str | None:
        """The title of the schema, which record name strategies use."""
        title = self.schema.get("title") if isinstance(self.schema, dict) else None
        return title if isinstance(title, str) else None

    def check(self, value: Any) -> None:
        """Raise a `SerializationError` if a value is not valid."""
        try:
            self._validator.validate(value)
        except ValidationError as error:
            place = "/".join(map(str, error.absolute_path))
            raise SerializationError(f"not valid at /{place}: {error.message}") from error
        except (SchemaError, Unresolvable, RecursionError) as error:
            raise SerializationError(f"the JSON Schema cannot be applied: {error}") from error

    def encode(self, value: Any, *, validate: bool = True) -> bytes:
        if validate:
            self.check(value)
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError) as reason:
            raise SerializationError(f"not JSON: {reason}") from reason

    def decode(self, data: bytes, *, validate: bool = True) -> Any:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as reason:
            raise SerializationError(f"not JSON: {reason}") from reason
        if validate:
            self.check(value)
        return value


def _resource(schema: Any) -> Resource[Any]:
    named = schema.get("$schema") if isinstance(schema, dict) else None
    specification = specification_with(named, DRAFT202012) if named else DRAFT202012
    return specification.create_resource(schema)


def _uris(schema: Any, name: str) -> set[str]:
    base = schema.get("$id", schema.get("id", "")) if isinstance(schema, dict) else ""
    return {name, urljoin(base, name)} if isinstance(base, str) else {name}
