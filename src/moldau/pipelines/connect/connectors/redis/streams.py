"""The Redis source of streams: entries in order, with the id of the last one as offset.

The offsets of the worker say where to continue; a consumer group in Redis is not needed. Entries that were
trimmed before they were read are missing, as for every reader of a stream.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    NonEmptyString,
    Range,
)
from moldau.pipelines.connect.connectors.redis import connection
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.data.schema import STRING, map_of, struct
from moldau.pipelines.connect.data.struct import Struct
from moldau.pipelines.connect.sdk import (
    ExactlyOnceSupport,
    Offset,
    Partition,
    SourceConnector,
    SourceContext,
    SourceTask,
)

logger = logging.getLogger(__name__)

STREAM: Final = "redis.stream.name"
START: Final = "redis.stream.offset"
BLOCK: Final = "redis.stream.block"
BATCH_SIZE: Final = "batch.size"
TOPIC: Final = "topic"
VALUE: Final = struct(
    {"id": STRING, "stream": STRING, "body": map_of(STRING, STRING)}, name="com.redis.Stream"
)
_OFFSET: Final = "offset"
_FIRST_RETRY_S, _LAST_RETRY_S = 0.2, 30.0


def _definition() -> ConfigDef:
    high, medium, low, text = Importance.HIGH, Importance.MEDIUM, Importance.LOW, ConfigType.STRING
    definition = connection.define_connection(ConfigDef())
    definition.define(
        STREAM, ConfigType.LIST, NO_DEFAULT, high, "Streams to read; they are divided among the tasks."
    )
    definition.define(
        TOPIC, text, "${stream}", high, "Topic; ${stream} is replaced.", validator=NonEmptyString()
    )
    definition.define(
        START,
        text,
        "0-0",
        medium,
        "Entry after which to begin without stored offset: 0-0 for all, $ for new ones.",
    )
    definition.define(
        BLOCK,
        ConfigType.LONG,
        200,
        low,
        "Milliseconds to wait for entries.",
        validator=Range(1, 10_000),
    )
    definition.define(
        BATCH_SIZE,
        ConfigType.INT,
        500,
        low,
        "Maximum number of entries per stream and poll.",
        validator=Range(1),
    )
    return definition


class RedisStreamSourceConnector(SourceConnector):
    config = _definition()

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        values = super().validate(properties)
        try:
            connection.check_uri(values[connection.URI].value or "")
        except ConfigError as error:
            values[connection.URI].errors.append(str(error))
        if values[STREAM].value == []:
            values[STREAM].errors.append("At least one stream is required.")
        return values

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        streams = self.config.parse(self.properties)[STREAM]
        groups = [streams[first::max_tasks] for first in range(min(max_tasks, len(streams)))]
        return [{**self.properties, STREAM: ",".join(each)} for each in groups]

    def task(self) -> SourceTask:
        return RedisStreamSourceTask(self.config)

    def exactly_once_support(self, properties: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> bool:
        for partition, offset in offsets:
            if "stream" not in partition:
                raise ConnectError("A partition of the Redis source has the key 'stream'")
            if offset is not None and not isinstance(offset.get(_OFFSET), str):
                raise ConnectError("An offset of the Redis source has the id of an entry as 'offset'")
        return True


class RedisStreamSourceTask(SourceTask):
    def __init__(self, definition: ConfigDef) -> None:
        self._definition = definition
        self._client: Any = None
        self._failures = 0

    def start(self, context: SourceContext) -> None:
        self._config = config = self._definition.parse(context.config)
        self._context = context
        self._client = connection.connect(config)
        self._positions: dict[str, str] = {}
        for name in config[STREAM]:
            stored = context.offset({"stream": name}) or {}
            self._positions[name] = stored.get(_OFFSET) or config[START]

    def poll(self) -> Sequence[SourceRecord]:
        config = self._config
        try:
            self._resolve()
            found = self._client.xread(self._positions, count=config[BATCH_SIZE], block=config[BLOCK])
        except connection.transient_errors() as error:
            self._failures += 1
            delay_s = min(_FIRST_RETRY_S * 2 ** min(self._failures, 20), _LAST_RETRY_S)
            logger.warning("Redis did not answer, trying again in %.1f s: %s", delay_s, error)
            self._context.wait(delay_s)
            return ()
        self._failures = 0
        answers = found.items() if isinstance(found, dict) else found
        return [record for name, entries in answers for record in self._entries(name, entries)]

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()

    def _resolve(self) -> None:
        """Replace `$`, which would mean another entry at every read."""
        for name, position in self._positions.items():
            if position == "$":
                last = self._client.xrevrange(name, count=1)
                self._positions[name] = last[0][0].decode() if last else "0-0"

    def _entries(self, name: bytes, entries: Sequence[Any]) -> list[SourceRecord]:
        # RESP3 nests the entries of a stream once more.
        if len(entries) == 1 and isinstance(entries[0], list):
            entries = entries[0]
        stream, records = _text(name), []
        topic = self._config[TOPIC].replace("${stream}", stream)
        for entry, fields in entries:
            position = _text(entry)
            body = {_text(field): _text(value) for field, value in (fields or {}).items()}
            records.append(
                SourceRecord(
                    topic=topic,
                    key_schema=STRING,
                    key=position,
                    value_schema=VALUE,
                    value=Struct(VALUE, id=position, stream=stream, body=body),
                    timestamp=int(position.partition("-")[0]),
                    source_partition={"stream": stream},
                    source_offset={_OFFSET: position},
                )
            )
            self._positions[stream] = position
        return records


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
