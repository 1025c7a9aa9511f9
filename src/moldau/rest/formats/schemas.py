"""The formats with a schema: avro, jsonschema and protobuf, framed with the schema's id.

Schemas come from the registry: by id, by version, the latest of a subject, or by their text, which is
registered if it is new. Codecs are cached by schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from moldau.http.errors import ApiError
from moldau.rest import errors
from moldau.rest.errors import bad_request, serialization, undeserializable
from moldau.rest.values import INT32, is_text, quoted_number

if TYPE_CHECKING:
    from moldau.client.records import Headers
    from moldau.client.registry.client import AsyncRegistryClient
    from moldau.client.registry.types import RegisteredSchema, Schema

#: The embedded format of each schema type of the registry, and the reverse.
FORMATS: Final = {"AVRO": "avro", "JSON": "jsonschema", "PROTOBUF": "protobuf"}
TYPES: Final = {name: kind for kind, name in FORMATS.items()}
#: Of the cached codecs, and of the texts of their schemas.
_MAX_CODECS: Final = 1000
_MAX_CHARACTERS: Final = 32 << 20
_NO_REGISTRY: Final = "Schema Registry not defined, no Schema Registry client available."


class Codec(Protocol):
    """JSON of a request ↔ bytes of a record, without the frame. Raises `ValueError` and the like.

    `indexes` is the message type of Protobuf.
    """

    @property
    def name(self) -> str | None: ...

    def frame(self, id: int) -> bytes: ...

    def encode(self, data: Any) -> bytes: ...

    def decode(self, data: bytes, indexes: tuple[int, ...] = ()) -> Any: ...


class Decoded(NamedTuple):
    """A key or value, and its schema: type and id (None if the record has a GUID)."""

    type: str
    id: int | None
    data: Any


class UsedSchema:
    """A schema of the registry, for records of one topic."""

    __slots__ = ("_codec", "_frame", "format", "id", "subject", "version")

    def __init__(self, id: int, subject: str, version: int | None, kind: str, codec: Codec) -> None:
        self.id, self.subject, self.version, self.format = id, subject, version, kind
        self._codec = codec
        self._frame = codec.frame(id)

    def encode(self, data: Any) -> bytes:
        """Return a framed record; `ApiError` 400 if the data does not fit the schema, 422 if too deep."""
        from moldau.client.registry.codecs.bounds import NestedTooDeeply, TooManyParts

        try:
            return self._frame + self._codec.encode(data)
        except ApiError:
            raise
        except (RecursionError, NestedTooDeeply, TooManyParts):
            raise errors.nested_too_deeply() from None
        except Exception as error:  # noqa: BLE001  the libraries raise anything, fastavro a plain Exception
            raise bad_request(f"The data does not fit the {self.format} schema: {error}") from None


class SchemaFormats:
    """Codecs of the registry's schemas."""

    def __init__(self, registry: Mapping[str, str] | None) -> None:
        self._properties = registry
        self._registry: AsyncRegistryClient | None = None
        self._codecs: dict[tuple[Any, ...], Codec] = {}
        self._characters = 0
        self._by_id: dict[tuple[int | None, str | None], tuple[str, Codec]] = {}

    @property
    def has_registry(self) -> bool:
        return self._properties is not None

    @property
    def registry(self) -> AsyncRegistryClient:
        if self._registry is None:
            if self._properties is None:
                raise serialization(_NO_REGISTRY)
            from moldau.client.registry.client import AsyncRegistryClient

            self._registry = AsyncRegistryClient(self._properties)
        return self._registry

    async def close(self) -> None:
        if self._registry is not None:
            await self._registry.close()

    async def by_id(
        self,
        id: Any,
        topic: str,
        *,
        is_key: bool,
        kind: str | None = None,
        subject: str | None = None,
        strategy: str | None = None,
    ) -> UsedSchema:
        """Return a schema by its id; `ApiError` 42207 if the registry does not have it."""
        id = _number(id, "id")
        schema = await self._ask(
            self.registry.schema_by_id(id), f"Error when fetching schema by id. schemaId = {id}"
        )
        found = _format(schema)
        if kind is not None and found != kind:
            raise bad_request(f"Schema {id} is of the format {found}, not {kind}.")
        codec = await self._codec(schema)
        subject = subject or _subject(strategy, topic, is_key, codec.name)
        failure = f"Error when fetching schema version. subject = {subject}, schema = {schema.text}"
        version = (await self._ask(self.registry.lookup(subject, schema), failure)).version
        return UsedSchema(id, subject, version, found, codec)

    async def by_version(
        self,
        version: Any,
        topic: str,
        *,
        is_key: bool,
        subject: str | None = None,
        strategy: str | None = None,
    ) -> UsedSchema:
        """Return a version of a subject, or its latest one."""
        subject = subject or _subject(strategy, topic, is_key, None)
        if version is None:
            failure = f"Error when fetching latest schema version. subject = {subject}"
            registered = await self._ask(self.registry.latest(subject), failure)
        else:
            version = _number(version, "version")
            failure = f"Schema does not exist for subject: {subject}, version: {version}"
            registered = await self._ask(self.registry.version(subject, version), failure)
        return await self._used(registered)

    async def registered(
        self,
        kind: str,
        text: Any,
        topic: str,
        *,
        is_key: bool,
        subject: str | None = None,
        strategy: str | None = None,
    ) -> UsedSchema:
        """Return the schema with a text, registered under its subject if it is new."""
        from moldau.client.registry.types import RegistryError, Schema

        if not is_text(text):
            raise bad_request("A schema must be a string.")
        schema = Schema(text, TYPES[kind])
        codec = await self._codec(schema)
        subject = subject or _subject(strategy, topic, is_key, codec.name)
        try:
            return await self._used(await self.registry.lookup(subject, schema))
        except RegistryError as error:
            if error.status in (401, 403):
                raise _registry_error("Error when registering schema.", error) from None
        failure = (
            f"Error when registering schema. format = {kind.upper()}, subject = {subject}, schema = {text}"
        )
        return await self._used(await self._ask(self.registry.register(subject, schema), failure))

    async def decode(self, kind: str, data: bytes, headers: Headers | None, is_key: bool) -> Decoded:
        """Return a record's key or value as JSON; `ApiError` 40801 if it cannot be deserialized."""
        from moldau.client.registry.serdes import framing

        try:
            name, rest = framing.of_record(data, headers or (), key=is_key)
            known = self._by_id.get((name.id, name.guid))
            if known is None:
                if name.guid is not None:
                    schema = await self.registry.schema_by_guid(name.guid)
                else:
                    schema = await self.registry.schema_by_id(name.id or 0)
                if len(self._by_id) >= _MAX_CODECS:
                    self._by_id.clear()
                known = self._by_id[(name.id, name.guid)] = (schema.schema_type, await self._codec(schema))
            if known[0] == "PROTOBUF":
                name, rest = framing.of_record(data, headers or (), key=is_key, with_indexes=True)
            return Decoded(known[0], name.id, known[1].decode(rest, name.indexes))
        except RecursionError:
            raise undeserializable(f"Error deserializing a {kind} record: it is nested too deeply") from None
        except Exception as error:  # noqa: BLE001  as for encoding; bytes may be anything
            raise undeserializable(f"Error deserializing a {kind} record: {error}") from None

    async def _used(self, registered: RegisteredSchema) -> UsedSchema:
        codec = await self._codec(registered.schema)
        kind = _format(registered.schema)
        return UsedSchema(registered.id, registered.subject, registered.version, kind, codec)

    async def _codec(self, schema: Schema) -> Codec:
        codec = self._codecs.get(schema.key)
        if codec is None:
            references = await self._ask(
                self.registry.referenced_texts(schema), "Error when fetching the references of a schema."
            )
            codec = _create(schema, references)
            self._characters += len(schema.text) + sum(map(len, references.values()))
            if len(self._codecs) >= _MAX_CODECS or self._characters > _MAX_CHARACTERS:
                self._codecs.clear()
                self._by_id.clear()
                self._characters = 0
            self._codecs[schema.key] = codec
        return codec

    @staticmethod
    async def _ask(answer: Any, failure: str) -> Any:
        from moldau.client.registry.types import RegistryError

        try:
            return await answer
        except RegistryError as error:
            raise _registry_error(failure, error) from None


def _number(value: Any, what: str) -> int:
    """Return an id or version; Confluent's proxy accepts a number in quotes, too, and clients send it."""
    try:
        return quoted_number(value, INT32)
    except ValueError:
        raise bad_request(f"A schema {what} must be a number.") from None


def _format(schema: Schema) -> str:
    if schema.schema_type not in FORMATS:
        raise serialization(f"The proxy does not know schemas of the type {schema.schema_type}.")
    return FORMATS[schema.schema_type]


def _registry_error(failure: str, error: Any) -> ApiError:
    if error.status in (401, 403):
        return ApiError(403, errors.KAFKA_AUTHORIZATION, failure)
    return serialization(f"{failure}\n{error}")


def _subject(strategy: str | None, topic: str, is_key: bool, record: str | None) -> str:
    """Return the subject of a strategy: TOPIC_NAME, RECORD_NAME or TOPIC_RECORD_NAME."""
    if strategy in (None, "TOPIC_NAME"):
        return f"{topic}-{'key' if is_key else 'value'}"
    if record is None:
        raise bad_request(f"Cannot use schema_subject_strategy={strategy} without schema_id or schema.")
    if not is_text(record):
        raise bad_request("The name of the schema is not valid in UTF-8.")
    return record if strategy == "RECORD_NAME" else f"{topic}-{record}"


def _create(schema: Schema, references: Mapping[str, str]) -> Codec:
    try:
        return _codec_type(schema.schema_type)(schema.text, references)
    except Exception as error:  # noqa: BLE001  as for encoding; the text comes from clients
        raise errors.unprocessable(42205, f"Invalid schema: {error}") from None


def _codec_type(schema_type: str) -> Callable[[str, Mapping[str, str]], Codec]:
    """Return the codec of a type of schemas; the libraries of the others are not loaded."""
    if schema_type == "AVRO":
        from moldau.rest.formats.avro import AvroJson

        return AvroJson
    if schema_type == "JSON":
        from moldau.rest.formats.json_schema import JsonSchemaJson

        return JsonSchemaJson
    from moldau.rest.formats.protobuf import ProtobufJson

    return ProtobufJson
