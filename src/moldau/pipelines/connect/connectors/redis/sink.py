"""The Redis sink: each record becomes a command on a key.

Commands that set (SET, HSET, JSONSET, SADD, ZADD, DEL) may be repeated, so their result is exactly once;
XADD, LPUSH and RPUSH are at least once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.config.definition import (
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    Range,
    ValidString,
)
from moldau.pipelines.connect.connectors.documents import JsonText, key_text, plain, scalar_text
from moldau.pipelines.connect.connectors.redis import connection
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError, DataError, RetriableError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.sdk import SinkConnector, SinkContext, SinkTask

logger = logging.getLogger(__name__)

COMMAND: Final = "redis.command"
KEY: Final = "redis.key"
SEPARATOR: Final = "redis.separator"
TRANSACTION: Final = "redis.multiexec.enabled"
BATCH_SIZE: Final = "batch.size"
TTL: Final = "redis.key.ttl"
MAX_LENGTH: Final = "redis.stream.max.length"
COMMANDS: Final = (*("HSET", "SET", "JSONSET", "XADD", "LPUSH", "RPUSH", "SADD", "ZADD", "DEL"),)
#: Commands on one key for all records of a topic; the others have a key of the record's key.
_COLLECTIONS: Final = {"XADD", "LPUSH", "RPUSH", "SADD", "ZADD"}
_RETRY_MS: Final = 2000


def _definition() -> ConfigDef:
    high, medium, low, text = Importance.HIGH, Importance.MEDIUM, Importance.LOW, ConfigType.STRING
    definition = connection.define_connection(ConfigDef())
    definition.define(
        COMMAND,
        text,
        "HSET",
        high,
        "Command: HSET (fields of the value), SET and JSONSET (the value) on a key of the record's key; XADD "
        "(fields as an entry), LPUSH, RPUSH, SADD (the key, or without one the value), ZADD (the key with "
        "the value as score) on a key of the topic; DEL. A record without value deletes key or member.",
        validator=ValidString(COMMANDS, ignore_case=True),
    )
    definition.define(
        KEY,
        text,
        "${topic}",
        medium,
        "Key of collections, and begin of the other keys; ${topic} is replaced. Empty: no begin.",
    )
    definition.define(SEPARATOR, text, ":", medium, "Text between the begin of a key and the record's key.")
    definition.define(
        TRANSACTION, ConfigType.BOOLEAN, False, medium, "Write each batch as a transaction (MULTI/EXEC)."
    )
    definition.define(
        BATCH_SIZE,
        ConfigType.INT,
        1000,
        low,
        "Maximum number of commands sent at a time.",
        validator=Range(1),
    )
    definition.define(
        TTL, ConfigType.LONG, -1, low, "Seconds after which SET, HSET and JSONSET keys expire; -1: never."
    )
    definition.define(
        MAX_LENGTH,
        ConfigType.LONG,
        0,
        low,
        "Approximate maximum length of streams; 0: no limit.",
        validator=Range(0),
    )
    return definition


class RedisSinkConnector(SinkConnector):
    config = _definition()

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return [self.properties] * max_tasks

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        values = super().validate(properties)
        try:
            connection.check_uri(values[connection.URI].value or "")
        except ConfigError as error:
            values[connection.URI].errors.append(str(error))
        return values

    def task(self) -> SinkTask:
        return RedisSinkTask(self.config)

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        return True


class RedisSinkTask(SinkTask):
    def __init__(self, definition: ConfigDef) -> None:
        self._definition = definition
        self._client: Any = None
        self._json = JsonText()

    def start(self, context: SinkContext) -> None:
        self._config = config = self._definition.parse(context.config)
        self._context = context
        self._client = connection.connect(config)
        self._command: str = config[COMMAND].upper()
        self._queue: Callable[[Any, SinkRecord], None] = getattr(self, f"_{self._command.lower()}")

    def put(self, records: Sequence[SinkRecord]) -> None:
        size = self._config[BATCH_SIZE]
        for first in range(0, len(records), size):
            self._write(records[first : first + size])

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()

    def _write(self, records: Sequence[SinkRecord]) -> None:
        pipeline = self._client.pipeline(transaction=self._config[TRANSACTION])
        #: The record of each command.
        owners: list[SinkRecord] = []
        for record in records:
            try:
                self._queue(pipeline, record)
            except DataError as error:
                self._context.report(record, error)
            owners += [record] * (len(pipeline) - len(owners))
        transient = connection.transient_errors()
        try:
            results = pipeline.execute(raise_on_error=False)
        except transient as error:
            raise self._again(error) from error
        for record, result in zip(owners, results, strict=False):
            if isinstance(result, transient):
                raise self._again(result) from result
            if isinstance(result, Exception):
                self._refused(record, result)

    def _refused(self, record: SinkRecord, error: Exception) -> None:
        refused = ConnectError(f"Redis has refused the record: {error}")
        refused.__cause__ = error
        self._context.report(record, refused)

    def _again(self, error: Exception) -> RetriableError:
        self._context.retry_after(_RETRY_MS)
        return RetriableError(f"Redis did not answer: {error}")

    # Commands.

    def _hset(self, pipeline: Any, record: SinkRecord) -> None:
        key = self._key(record)
        if record.value is None:
            pipeline.delete(key)
            return
        fields = {name: text for name, text in self._fields(record).items() if text is not None}
        if not fields:
            raise DataError("The record has no field with a value for HSET")
        # Fields of an earlier record that this one does not have must not remain.
        pipeline.delete(key)
        pipeline.hset(key, mapping=fields)
        self._expire(pipeline, key)

    def _set(self, pipeline: Any, record: SinkRecord) -> None:
        key = self._key(record)
        if record.value is None:
            pipeline.delete(key)
            return
        seconds = self._config[TTL]
        pipeline.set(key, self._value(record), ex=seconds if seconds > 0 else None)

    def _jsonset(self, pipeline: Any, record: SinkRecord) -> None:
        key = self._key(record)
        if record.value is None:
            pipeline.delete(key)
            return
        text = self._json.of(record.topic, record.value_schema, record.value)
        pipeline.execute_command("JSON.SET", key, ".", text)
        self._expire(pipeline, key)

    def _del(self, pipeline: Any, record: SinkRecord) -> None:
        pipeline.delete(self._key(record))

    def _xadd(self, pipeline: Any, record: SinkRecord) -> None:
        if record.value is None:
            raise DataError("The record has no value for XADD")
        fields = {name: text for name, text in self._fields(record).items() if text is not None}
        most = self._config[MAX_LENGTH]
        pipeline.xadd(self._collection(record), fields, maxlen=most or None, approximate=True)

    def _lpush(self, pipeline: Any, record: SinkRecord) -> None:
        self._push(pipeline.lpush, pipeline, record)

    def _rpush(self, pipeline: Any, record: SinkRecord) -> None:
        self._push(pipeline.rpush, pipeline, record)

    def _push(self, push: Any, pipeline: Any, record: SinkRecord) -> None:
        if record.value is None:
            pipeline.lrem(self._collection(record), 0, self._member(record))
        else:
            push(self._collection(record), self._member(record))

    def _sadd(self, pipeline: Any, record: SinkRecord) -> None:
        command = pipeline.srem if record.value is None else pipeline.sadd
        command(self._collection(record), self._member(record))

    def _zadd(self, pipeline: Any, record: SinkRecord) -> None:
        if record.value is None:
            pipeline.zrem(self._collection(record), self._member(record))
            return
        try:
            score = float(record.value)
        except (TypeError, ValueError):
            raise DataError("The value of a record for ZADD must be a number") from None
        pipeline.zadd(self._collection(record), {self._member(record): score})

    # Keys and values.

    def _collection(self, record: SinkRecord) -> str:
        key: str = self._config[KEY]
        return key.replace("${topic}", record.topic) or record.topic

    def _key(self, record: SinkRecord) -> str:
        own = key_text(record)
        if own is None:
            raise DataError(f"The record has no key, which {self._command} needs")
        begin = self._config[KEY].replace("${topic}", record.topic)
        return f"{begin}{self._config[SEPARATOR]}{own}" if begin else own

    def _member(self, record: SinkRecord) -> str | bytes:
        own = key_text(record)
        if own is None:
            if record.value is None:
                raise DataError("The record has neither key nor value")
            return self._value(record)
        return own

    def _value(self, record: SinkRecord) -> str | bytes:
        value = record.value
        if isinstance(value, str | bytes):
            return value
        return self._json.of(record.topic, record.value_schema, value)

    def _fields(self, record: SinkRecord) -> dict[str, str | bytes | None]:
        """Return the fields of a struct or map as texts; nested ones as JSON."""
        found = plain(record.value_schema, record.value)
        if not isinstance(found, dict):
            raise DataError(f"{self._command} needs a struct or a map, not a single value")
        return {name: self._text(record.topic, value) for name, value in found.items()}

    def _text(self, topic: str, value: Any) -> str | bytes | None:
        if value is None or isinstance(value, str | bytes):
            return value
        if isinstance(value, dict | list):
            return self._json.of(topic, None, value)
        return scalar_text(None, value)

    def _expire(self, pipeline: Any, key: str) -> None:
        if self._config[TTL] > 0:
            pipeline.expire(key, self._config[TTL])
