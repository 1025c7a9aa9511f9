"""The registry as a converter uses it: the schema to write with, the schema of bytes, and what errors mean.

A registry that cannot be reached is a `RetriableError`, as the network's errors are in Confluent's
converters; everything else about a record is a `DataError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Generic, NamedTuple, TypeVar

from moldau.base.errors import KafkaError
from moldau.client.registry.client import RegistryClient
from moldau.client.registry.rules.engine import Rules
from moldau.client.registry.rules.rule import READ, WRITE, Context
from moldau.client.registry.serdes.settings import SerdeSettings
from moldau.client.registry.serdes.target import Codecs, Subjects
from moldau.client.registry.types import RegisteredSchema, RegistryError, Schema
from moldau.pipelines.connect.converters.interface import RawHeaders
from moldau.pipelines.connect.converters.registry.settings import client_properties, serializer_properties
from moldau.pipelines.connect.data.errors import ConfigError, DataError, RetriableError

Codec = TypeVar("Codec")

_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERROR: Final = 500


class Written(NamedTuple):
    """Bytes of a record: the data without the frame, its schema, and the one to read it with."""

    data: bytes
    #: The path of the message type of Protobuf.
    indexes: tuple[int, ...]
    schema: Schema
    reader: Schema
    #: The version of the schema in its subject; None if the registry does not have it there.
    version: int | None


class RegistryAccess(Generic[Codec]):
    """`make` creates the codec of a schema text; `name_of` returns the codec's record name."""

    def __init__(
        self,
        config: Mapping[str, Any],
        is_key: bool,
        make: Callable[[str, Mapping[str, str]], Codec],
        cache_size: int,
    ) -> None:
        try:
            self.client = RegistryClient(client_properties(config))
            settings = SerdeSettings.of(serializer_properties(config), self.client, key=is_key)
        except (KafkaError, ValueError) as error:
            raise ConfigError(str(error)) from error
        self.settings = settings
        self.codecs = Codecs(self.client, make)
        self._subjects = Subjects(self.client, settings, key=is_key)
        self._is_key = is_key
        self._rules = Rules()
        self._cache_size = max(1, cache_size)
        self._versions: dict[tuple[str, str], int | None] = {}

    def target(self, topic: str, record_name: str | None, schema: Schema | None) -> RegisteredSchema:
        """Return the version to write with, which is registered if the settings say so."""
        return self._subjects.target(topic, self._subjects.subject(topic, record_name), schema)

    def framed(
        self,
        target: RegisteredSchema,
        data: bytes,
        headers: RawHeaders,
        indexes: tuple[int, ...] | None = None,
    ) -> bytes:
        return self._subjects.framed(target, data, headers if isinstance(headers, list) else (), indexes)

    def written(
        self,
        topic: str,
        headers: RawHeaders,
        data: bytes,
        record_name: Callable[[Schema], str | None],
        *,
        with_indexes: bool = False,
    ) -> Written:
        """Return the parts of a record's bytes."""
        given = headers if isinstance(headers, list) else list(headers)
        name, schema, payload = self._subjects.writer(data, given, topic, with_indexes=with_indexes)
        subject = self._subjects.subject_or_none(topic, record_name(schema))
        latest = None if subject is None else self._subjects.latest(subject)
        reader = schema if latest is None else latest.schema
        version = None if subject is None else self._version_of(subject, schema)
        return Written(payload, name.indexes, schema, reader, version)

    def _version_of(self, subject: str, schema: Schema) -> int | None:
        key = (subject, schema.text)
        if key not in self._versions:
            if len(self._versions) >= self._cache_size:
                self._versions.clear()
            self._versions[key] = self._looked_up(subject, schema)
        return self._versions[key]

    def _looked_up(self, subject: str, schema: Schema) -> int | None:
        try:
            return self.client.lookup(subject, schema, deleted=True).version
        except RegistryError as error:
            if error.not_found:
                return None
            raise

    def apply_write_rules(self, topic: str, target: RegisteredSchema, value: Any, walk: Any) -> Any:
        """Apply the rules of the target's schema; `walk` makes the walk over a value's fields."""
        if target.schema.rule_set is None:
            return value
        context = Context(WRITE, target.schema, target.subject, topic, self._is_key, ())
        return self._rules.apply(context, value, walk())

    def apply_read_rules(self, topic: str, schema: Schema, value: Any, walk: Any) -> Any:
        if schema.rule_set is None:
            return value
        context = Context(READ, schema, "", topic, self._is_key, ())
        return self._rules.apply(context, value, walk())

    def close(self) -> None:
        self.client.close()


@contextmanager
def converting(action: str, topic: str) -> Iterator[None]:
    """Turn errors of the registry and of codecs into those of Connect."""
    try:
        yield
    except RegistryError as error:
        text = f"Failed to {action} data of topic {topic}: {error}"
        if error.status in (0, _TOO_MANY_REQUESTS) or error.status >= _SERVER_ERROR:
            raise RetriableError(text) from error
        raise DataError(text) from error
    except KafkaError as error:
        raise DataError(f"Failed to {action} data of topic {topic}: {error}") from error
