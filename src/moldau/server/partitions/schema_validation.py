"""Broker-side schema validation: do the schema ids of a batch exist under the subjects of the topic?

A topic with `confluent.key.schema.validation` or `confluent.value.schema.validation` accepts a record only if
the schema registry has the schema that the record names, registered under the subject that the topic's
subject name strategy gives, or under the subject that this one is an alias of. The record names the schema in
front of its data or in a header, by id or by GUID. Null keys and values have no schema and are accepted. The
data is not read.

- An id that was found is cached without limit of time, because a schema never changes; an id that was not
  found is cached for `confluent.missing.id.cache.ttl.sec`. Both caches are bounded.
- The registry is asked on the event loop, without a thread, with a bounded number of requests at a time.
  Imports, key stores and the parsing of schemas run in the pool. Batches that name the same id share its
  look-up, and each waits until its own deadline: the request's timeout, at most 5 seconds. The look-up
  continues after that, so that the retry of a producer with a short timeout finds its result.
- If the registry cannot answer, batches with cached ids are still accepted. Other ids are refused with
  REQUEST_TIMED_OUT, which producers retry. After no answer, or a status of 500 and above, the registry is not
  asked again for a short time. A status that concerns one request, or a producer's deadline, has no effect.
- One batch may name many ids. Checking ends after a few ids that are refused.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Hashable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.base.pool import Pool
from moldau.client.registry.cache import BoundedCache
from moldau.client.registry.client import AsyncRegistryClient
from moldau.client.registry.types import RegistryError, Schema
from moldau.config.broker.config import BrokerConfig
from moldau.config.topic import RECORD_NAME_STRATEGY, TOPIC_NAME_STRATEGY
from moldau.server.partitions.registrations import Registrations, UnknownSchema, guid
from moldau.storage.log.append import RecordError, refused_records
from moldau.storage.log.config import LogConfig
from moldau.storage.log.schema_ids import SchemaIds, SchemaKey

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto

logger = logging.getLogger(__name__)

#: Requests to the registry at a time.
_MAX_REQUESTS = 8
#: Maximum number of ids that are looked up or wait for it.
_MAX_LOOK_UPS = 1000
#: Maximum time a batch waits for the registry, including its turn, and maximum time of a look-up.
_MAX_SECONDS = 5.0
#: Pause between requests after a failure of the registry.
_PAUSE_SECONDS = 1.0
#: Failures are logged once in this time.
_REPORT_SECONDS = 60.0
_MAX_MISSING = 1000
_MAX_REFUSED_IDS = 10
_MAX_ERRORS = 1000
_MAX_ID = 2**31 - 1
_SERVER_ERROR = 500


class _Unparsable(Exception):
    """A schema of the registry has no record type that can be determined."""


class SubjectOfSchema:
    """The subject under which a schema must be registered, by the strategy of a topic."""

    __slots__ = ("_key", "_strategy", "_topic")

    def __init__(self, topic: str, strategy: str, *, key: bool) -> None:
        self._topic = topic
        self._strategy = strategy
        self._key = key

    @property
    def part(self) -> str:
        return "key" if self._key else "value"

    @property
    def needs_record_names(self) -> bool:
        return self._strategy != TOPIC_NAME_STRATEGY

    def cache_key(self, schema: SchemaKey) -> tuple[str, str, bool, SchemaKey]:
        return (self._topic, self._strategy, self._key, schema)

    def names(self, record_names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the subjects that are accepted: one per name of a record type of the schema."""
        if self._strategy == TOPIC_NAME_STRATEGY:
            return (f"{self._topic}-{self.part}",)
        if self._strategy == RECORD_NAME_STRATEGY:
            return record_names
        return tuple(f"{self._topic}-{name}" for name in record_names)


class SchemaValidator:
    def __init__(self, client: AsyncRegistryClient, clock: Clock, pool: Pool, config: BrokerConfig) -> None:
        self._client = client
        self._registrations = Registrations(client)
        self._clock = clock
        self._pool = pool
        self._missing_seconds = config.integer("confluent.missing.id.cache.ttl.sec")
        self._known = BoundedCache(
            config.integer("confluent.schema.registry.max.cache.size"), clock.monotonic
        )
        #: The reason for refusing an id.
        self._missing = BoundedCache(_MAX_MISSING, clock.monotonic)
        self._slots = asyncio.Semaphore(_MAX_REQUESTS)
        self._look_ups: dict[Hashable, asyncio.Task[str | None]] = {}
        self._loaded = False
        self._failed_at: float | None = None
        self._reported_at = float("-inf")

    @classmethod
    def of(cls, config: BrokerConfig, clock: Clock, pool: Pool) -> SchemaValidator:
        """Return the validator of a broker whose configuration names a registry."""
        return cls(AsyncRegistryClient(config.schema_registry_properties), clock, pool, config)

    async def check(
        self, topic_partition: TopicPartition, config: LogConfig, ids: SchemaIds, timeout_ms: int
    ) -> None:
        """Raise INVALID_RECORD with the records whose schemas are not registered."""
        errors: list[RecordError] = []
        refused = 0
        seconds = min(_MAX_SECONDS, max(timeout_ms, 0) / 1000)
        try:
            async with asyncio.timeout(seconds):
                for subject, id, numbers in _named(topic_partition.topic, config, ids):
                    problem = await self._problem(subject, id)
                    if problem is None:
                        continue
                    errors += [RecordError(number, problem) for number in numbers[:_MAX_ERRORS]]
                    refused += 1
                    if refused >= _MAX_REFUSED_IDS:
                        break
        except TimeoutError:
            raise _refusal(f"no answer within {seconds:g} seconds") from None
        if errors:
            raise refused_records(topic_partition, ErrorCode.INVALID_RECORD, sorted(errors)[:_MAX_ERRORS])

    async def close(self) -> None:
        for look_up in self._look_ups.values():
            look_up.cancel()
        await asyncio.gather(*self._look_ups.values(), return_exceptions=True)
        await self._client.close()

    async def _problem(self, subject: SubjectOfSchema, schema: SchemaKey) -> str | None:
        """Return why a schema is not accepted, or None."""
        key = subject.cache_key(schema)
        if self._known.get(key) is not None:
            return None
        if isinstance(schema, int) and schema > _MAX_ID:
            return _unknown(subject, schema)
        problem: str | None = self._missing.get(key)
        if problem is not None:
            return problem
        look_up = self._look_ups.get(key)
        if look_up is None:
            if len(self._look_ups) >= _MAX_LOOK_UPS:
                raise _refusal(f"{_MAX_LOOK_UPS} other ids are being looked up")
            look_up = self._look_ups[key] = asyncio.create_task(self._look_up(subject, schema))
            look_up.add_done_callback(partial(self._ended, key))
        return await asyncio.shield(look_up)

    def _ended(self, key: Hashable, look_up: asyncio.Task[str | None]) -> None:
        del self._look_ups[key]
        if not look_up.cancelled():
            # The batches that asked may have given up, so that none retrieves the error.
            look_up.exception()

    async def _look_up(self, subject: SubjectOfSchema, schema: SchemaKey) -> str | None:
        """Ask the registry and keep its answer."""
        async with self._slots:
            now = self._clock.monotonic()
            if self._failed_at is not None and now - self._failed_at < _PAUSE_SECONDS:
                raise _refusal("it could not be reached a moment ago")
            try:
                async with asyncio.timeout(_MAX_SECONDS):
                    problem = await self._ask(subject, schema)
            except TimeoutError:
                raise self._unavailable(f"no answer within {_MAX_SECONDS:g} seconds") from None
        if problem is None:
            self._known.put(subject.cache_key(schema), True)
        elif self._missing_seconds > 0:
            self._missing.put(subject.cache_key(schema), problem, self._missing_seconds)
        return problem

    async def _ask(self, subject: SubjectOfSchema, schema: SchemaKey) -> str | None:
        try:
            if not self._loaded:
                await self._pool.run(self._client.load)
                self._loaded = True
            accepted = subject.names(await self._record_names(schema) if subject.needs_record_names else ())
            is_registered = await self._registrations.has(schema, accepted)
        except UnknownSchema:
            return _unknown(subject, schema)
        except RegistryError as error:
            if error.status == 0 or error.status >= _SERVER_ERROR:
                raise self._unavailable(error.message or "") from error
            self._report(error.message or "")
            raise _refusal(error.message or "") from error
        except _Unparsable as error:
            return f"{_names(subject, schema)}, which cannot be parsed: {error}"
        self._failed_at = None
        return None if is_registered else _not_registered(subject, schema, accepted)

    async def _record_names(self, key: SchemaKey) -> tuple[str, ...]:
        schema = await self._registrations.schema(key)
        references = await self._client.referenced_texts(schema) if schema.schema_type == "PROTOBUF" else {}
        try:
            return await self._pool.run(record_names_of, schema, references)
        except (KafkaError, ValueError, LookupError, TypeError) as error:
            raise _Unparsable(str(error)) from error

    def _unavailable(self, reason: str) -> KafkaError:
        """Note that the registry could not answer, and return the error for the producer."""
        self._failed_at = self._clock.monotonic()
        self._report(reason)
        return _refusal(reason)

    def _report(self, reason: str) -> None:
        now = self._clock.monotonic()
        if now - self._reported_at < _REPORT_SECONDS:
            return
        self._reported_at = now
        logger.warning(
            "Schema ids cannot be validated, and new ones are refused: the schema registry %s failed: %s",
            ", ".join(self._client.settings.urls),
            reason,
        )


def _refusal(reason: str) -> KafkaError:
    """Return an error that producers retry."""
    return KafkaError(
        ErrorCode.REQUEST_TIMED_OUT,
        f"The schema registry cannot be asked for a schema id that this broker does not know: {reason}",
    )


def record_names_of(schema: Schema, references: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the record types: of an Avro schema, of all messages, or the title.

    References are needed for Protobuf only, whose text is compiled.
    """
    if schema.schema_type == "PROTOBUF":
        from moldau.client.registry.codecs.protobuf import file_descriptor

        file = file_descriptor("schema.proto", schema.text, references)
        prefix = f"{file.package}." if file.package else ""
        return tuple(prefix + name for message in file.message_type for name in _message_names(message))
    outer = json.loads(schema.text)
    if schema.schema_type == "AVRO":
        return (_full_name(outer),)
    title = outer.get("title") if isinstance(outer, dict) else None
    return () if title is None else (title,)


def _full_name(schema: Any) -> str:
    """Return the full name of an Avro type; the name of an unnamed type is the type, as in Java."""
    if isinstance(schema, list):
        return "union"
    if isinstance(schema, str):
        return schema
    if "name" not in schema:
        return str(schema["type"])
    name, namespace = schema["name"], schema.get("namespace")
    return f"{namespace}.{name}" if namespace and "." not in name else str(name)


def _message_names(message: DescriptorProto) -> Iterator[str]:
    yield message.name
    for nested in message.nested_type:
        for name in _message_names(nested):
            yield f"{message.name}.{name}"


def _named(
    topic: str, config: LogConfig, ids: SchemaIds
) -> Iterator[tuple[SubjectOfSchema, SchemaKey, list[int]]]:
    """Yield the schemas of the keys and of the values, with the numbers of their records."""
    parts = (
        (ids.keys, SubjectOfSchema(topic, config.confluent_key_subject_name_strategy, key=True)),
        (ids.values, SubjectOfSchema(topic, config.confluent_value_subject_name_strategy, key=False)),
    )
    for found, subject in parts:
        for schema, numbers in (found or {}).items():
            yield subject, schema, numbers


def _names(subject: SubjectOfSchema, schema: SchemaKey) -> str:
    named = f"id {schema}" if isinstance(schema, int) else f"GUID {guid(schema)}"
    return f"the {subject.part} names the schema {named}"


def _unknown(subject: SubjectOfSchema, schema: SchemaKey) -> str:
    return f"{_names(subject, schema)}, which the schema registry does not have"


def _not_registered(subject: SubjectOfSchema, schema: SchemaKey, accepted: tuple[str, ...]) -> str:
    if not accepted:
        return f"{_names(subject, schema)}, whose record type has no name"
    names = " or ".join(accepted[:3])
    return f"{_names(subject, schema)}, which is not registered under the subject {names}"
