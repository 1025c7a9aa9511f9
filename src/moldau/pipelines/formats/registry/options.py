"""The registry, subject and schema of a format, from the options of a source or sink."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.registry.client import RegistryClient
from moldau.client.registry.serdes.subjects import strategy
from moldau.client.registry.types import RegisteredSchema, RegistryError, Schema

#: Options that are properties of the registry client.
_PREFIXES = ("schema.registry.", "basic.auth.", "bearer.auth.")


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    #: The properties of the client as JSON, so that it can be hashed and sent to workers.
    properties: str
    subject: str | None = None
    #: A fixed schema: of the reader, and of written records.
    schema_id: int | None = None
    #: Whether the only column is the whole key or value.
    unwrapped: bool = False

    @property
    def client(self) -> RegistryClient:
        return _client(self.properties)

    def schema(self) -> RegisteredSchema | None:
        """Return the schema of `schema_id` or the latest one of the subject; None if there is none."""
        if self.schema_id is not None:
            return RegisteredSchema(self.client.schema_by_id(self.schema_id), self.schema_id, "")
        try:
            return None if self.subject is None else self.client.latest(self.subject)
        except RegistryError as error:
            if error.not_found:
                return None
            raise

    def register(self, schema: Schema) -> int:
        """Register the schema of written records, and return its id."""
        if self.schema_id is not None:
            return self.schema_id
        if self.subject is None:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, "Records with a schema of a registry need one topic, or a subject"
            )
        return self.client.register(self.subject, schema).id


@lru_cache(maxsize=16)
def _client(properties: str) -> RegistryClient:
    """Return the client of this process."""
    return RegistryClient(json.loads(properties))


def registry_options(
    options: Mapping[str, str], topic: str | None = None, *, key: bool = False
) -> RegistryOptions | None:
    """Return the options of a registry, or None if none is named.

    Options: `registry` or `schema.registry.url`, the properties of its client, `subject` and `key_subject`,
    `subject.name.strategy`, `value_schema_id` and `key_schema_id`, and `wrap_single_value`.
    """
    url = options.get("registry") or options.get("schema.registry.url")
    if url is None:
        return None
    properties = {name: value for name, value in options.items() if name.startswith(_PREFIXES)}
    text = json.dumps({**properties, "schema.registry.url": url}, sort_keys=True)
    part = "key" if key else "value"
    subject = options.get("key_subject" if key else "subject")
    if subject is None and topic is not None:
        subject = strategy(options.get("subject.name.strategy"), _client(text))(topic, key, None)
    number = options.get(f"{part}_schema_id")
    unwrapped = options.get("wrap_single_value", "true").lower() == "false"
    return RegistryOptions(text, subject, None if number is None else int(number), unwrapped)
