"""The MongoDB source: change streams of a collection, a database or all databases.

The offset is the resume token of the event. With `startup.mode=copy_existing`, the documents that exist are
read first; changes since the begin of the copy follow, so a document may come twice, but none is missing.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from moldau.pipelines.connect.config.definition import (
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    Password,
    Range,
    ValidString,
)
from moldau.pipelines.connect.connectors.mongodb import connection
from moldau.pipelines.connect.connectors.mongodb.connection import FORMATTERS, from_json, to_json
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.data.schema import STRING
from moldau.pipelines.connect.sdk import ExactlyOnceSupport, SourceConnector, SourceContext, SourceTask

logger = logging.getLogger(__name__)

PREFIX, SUFFIX, SEPARATOR = "topic.prefix", "topic.suffix", "topic.separator"
PIPELINE: Final = "pipeline"
FULL_ONLY: Final = "publish.full.document.only"
TOMBSTONES: Final = "publish.full.document.only.tombstone.on.delete"
FULL_DOCUMENT: Final = "change.stream.full.document"
BEFORE: Final = "change.stream.full.document.before.change"
FORMATTER: Final = "output.json.formatter"
STARTUP: Final = "startup.mode"
LATEST, TIMESTAMP, COPY = "latest", "timestamp", "copy_existing"
START_TIME: Final = "startup.mode.timestamp.start.at.operation.time"
MAX_BATCH, AWAIT = "poll.max.batch.size", "poll.await.time.ms"
PARTITION_NAME: Final = "offset.partition.name"
_LOOKUPS: Final = ("", "default", "updateLookup", "whenAvailable", "required")
_BEFORE: Final = ("", "default", "off", "whenAvailable", "required")
_FIRST_RETRY_S, _LAST_RETRY_S = 0.2, 30.0


def _definition() -> ConfigDef:
    high, medium, low, text = Importance.HIGH, Importance.MEDIUM, Importance.LOW, ConfigType.STRING
    definition = connection.define_connection(ConfigDef(), database_required=False)
    definition.define(connection.COLLECTION, text, "", high, "Collection; empty: all of the database.")
    definition.define(PREFIX, text, "", low, "Begin of topics, before database and collection.")
    definition.define(SUFFIX, text, "", low, "End of topics.")
    definition.define(SEPARATOR, text, ".", low, "Text between the parts of a topic's name.")
    definition.define(
        PIPELINE, text, "[]", medium, "Stages of an aggregation as JSON, which select and change events."
    )
    definition.define(
        FULL_ONLY, ConfigType.BOOLEAN, False, high, "Write the document alone, without the event around it."
    )
    definition.define(
        TOMBSTONES,
        ConfigType.BOOLEAN,
        False,
        high,
        "With the document alone: use its key as the record's, and write a record without value for a "
        "deletion.",
    )
    definition.define(
        FULL_DOCUMENT,
        text,
        "",
        high,
        "The whole document in events of updates: updateLookup, whenAvailable or required.",
        validator=ValidString(_LOOKUPS),
    )
    definition.define(
        BEFORE,
        text,
        "",
        high,
        "The document before the change in events: off, whenAvailable or required.",
        validator=ValidString(_BEFORE),
    )
    definition.define(
        FORMATTER,
        text,
        FORMATTERS[0],
        medium,
        "Class of the form of JSON: DefaultJson, ExtendedJson or SimplifiedJson.",
        validator=ValidString(FORMATTERS),
    )
    definition.define(
        STARTUP,
        text,
        LATEST,
        medium,
        "Where to begin without offset: latest, timestamp, or copy_existing for the documents that exist.",
        validator=ValidString((LATEST, TIMESTAMP, COPY), ignore_case=True),
    )
    definition.define(
        START_TIME,
        text,
        "",
        medium,
        "Begin of startup.mode=timestamp: seconds since the epoch, or ISO 8601 with a time zone.",
    )
    definition.define(
        MAX_BATCH, ConfigType.INT, 1000, low, "Maximum number of events per poll.", validator=Range(1)
    )
    definition.define(
        AWAIT, ConfigType.LONG, 5000, low, "Milliseconds to wait for events.", validator=Range(1)
    )
    definition.define(PARTITION_NAME, text, "", medium, "Name of the offsets, instead of the namespace.")
    return definition


class MongoSourceConnector(SourceConnector):
    config = _definition()

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        values = super().validate(properties)
        for name, check in (
            (connection.URI, lambda: connection.check_uri(values[connection.URI].value)),
            (START_TIME, lambda: _seconds(values[START_TIME].value or "0")),
            (PIPELINE, lambda: _check_stages(values[PIPELINE].value or "[]")),
        ):
            try:
                check()
            except ConfigError as error:
                values[name].errors.append(str(error))
        if values[connection.COLLECTION].value and not values[connection.DATABASE].value:
            values[connection.DATABASE].errors.append("Required with a collection.")
        return values

    def task(self) -> SourceTask:
        return MongoSourceTask(self.config)

    def exactly_once_support(self, properties: Mapping[str, str]) -> ExactlyOnceSupport:
        is_copy = properties.get(STARTUP, LATEST).lower() == COPY
        return ExactlyOnceSupport.UNSUPPORTED if is_copy else ExactlyOnceSupport.SUPPORTED


class MongoSourceTask(SourceTask):
    def __init__(self, definition: ConfigDef) -> None:
        self._definition = definition
        self._client: Any = None
        self._stream: Any = None
        self._copy: Iterator[SourceRecord] | None = None
        self._token: Any = None
        self._failures = 0

    def start(self, context: SourceContext) -> None:
        self._config = config = self._definition.parse(context.config)
        self._context = context
        self._client = connection.connect(config)
        self._configured = {"db": config[connection.DATABASE], "coll": config[connection.COLLECTION]}
        self._partition = {"ns": config[PARTITION_NAME] or self._namespace()}
        stored = context.offset(self._partition) or {}
        is_copied = stored and stored.get("copy") != "true"
        self._token = from_json(stored["_id"]) if is_copied else None
        self._copies = not is_copied and config[STARTUP].lower() == COPY

    def poll(self) -> Sequence[SourceRecord]:
        from pymongo import errors

        try:
            records = self._read()
        except errors.PyMongoError as error:
            self._failed(error)
            return ()
        self._failures = 0
        return records

    def stop(self) -> None:
        self._close_stream()
        if self._client is not None:
            self._client.close()

    def _failed(self, error: Any) -> None:
        self._close_stream()
        is_lost = error.has_error_label("NonResumableChangeStreamError")
        if is_lost or not (
            connection.is_transient(error) or error.has_error_label("ResumableChangeStreamError")
        ):
            raise ConnectError(
                f"The change stream cannot be read: {error}. If the resume token is lost, reset the offsets"
            ) from error
        if self._copy is not None:
            self._copy, self._copies, self._token = None, True, None
        self._failures += 1
        delay_s = min(_FIRST_RETRY_S * 2 ** min(self._failures, 20), _LAST_RETRY_S)
        logger.warning("MongoDB did not answer, trying again in %.1f s: %s", delay_s, error)
        self._context.wait(delay_s)

    def _read(self) -> list[SourceRecord]:
        if self._stream is None:
            self._stream = self._open_stream()
        if self._copies:
            self._token = self._stream.resume_token
            self._copy, self._copies = self._copied(), False
        most, found = self._config[MAX_BATCH], []
        if self._copy is not None:
            for record in self._copy:
                found.append(record)
                if len(found) == most:
                    return found
            self._copy = None
            return found
        deadline = time.monotonic() + self._config[AWAIT] / 1000
        while len(found) < most:
            event = self._stream.try_next()
            if event is not None:
                found += self._records(event)
            elif found or time.monotonic() >= deadline or self._context.wait(0.02):
                break
        return found

    def _open_stream(self) -> Any:
        config = self._config
        options: dict[str, Any] = {"max_await_time_ms": min(500, config[AWAIT])}
        if config[FULL_DOCUMENT] not in ("", "default"):
            options["full_document"] = config[FULL_DOCUMENT]
        if config[BEFORE] not in ("", "default"):
            options["full_document_before_change"] = config[BEFORE]
        if self._token is not None:
            options["start_after"] = self._token
        elif config[STARTUP].lower() == TIMESTAMP and config[START_TIME]:
            options["start_at_operation_time"] = _timestamp(config[START_TIME])
        return self._target().watch(_stages(config[PIPELINE]), **options)

    def _target(self) -> Any:
        database, collection = self._config[connection.DATABASE], self._config[connection.COLLECTION]
        if not database:
            return self._client
        return self._client[database][collection] if collection else self._client[database]

    def _records(self, event: Mapping[str, Any]) -> list[SourceRecord]:
        self._token = event["_id"]
        offset = {"_id": to_json(self._token, "ExtendedJson")}
        kind, namespace = event.get("operationType"), event.get("ns") or self._configured
        if not self._config[FULL_ONLY]:
            return [self._record(namespace, {"_id": event["_id"]}, event, offset)]
        document = event.get("fullDocument")
        is_tombstone = document is None and self._config[TOMBSTONES] and kind == "delete"
        if document is None and not is_tombstone:
            return []
        key = event.get("documentKey") if self._config[TOMBSTONES] else {"_id": event["_id"]}
        return [self._record(namespace, key, document, offset)]

    def _copied(self) -> Iterator[SourceRecord]:
        offset = {"_id": to_json(self._token, "ExtendedJson"), "copy": "true"}
        for database, collection in self._namespaces():
            namespace = {"db": database, "coll": collection}
            for document in self._client[database][collection].find():
                event: Any = document
                key = {"_id": document["_id"]}
                if not self._config[FULL_ONLY]:
                    event = {
                        "_id": {"_id": document["_id"], "copyingData": True},
                        "operationType": "insert",
                        "documentKey": key,
                        "fullDocument": document,
                        "ns": namespace,
                    }
                yield self._record(namespace, key, event, offset)

    def _namespaces(self) -> list[tuple[str, str]]:
        database, collection = self._config[connection.DATABASE], self._config[connection.COLLECTION]
        if collection:
            return [(database, collection)]
        databases = [database] if database else self._client.list_database_names()
        return [
            (each, name)
            for each in databases
            if each not in ("admin", "config", "local")
            for name in sorted(self._client[each].list_collection_names())
            if not name.startswith("system.")
        ]

    def _record(
        self, namespace: Mapping[str, Any], key: Any, value: Any, offset: Mapping[str, Any]
    ) -> SourceRecord:
        config = self._config
        parts = (config[PREFIX], namespace.get("db"), namespace.get("coll"), config[SUFFIX])
        formatter = config[FORMATTER]
        return SourceRecord(
            topic=config[SEPARATOR].join(each for each in parts if each),
            key_schema=STRING,
            key=to_json(key, formatter),
            value_schema=None if value is None else STRING,
            value=None if value is None else to_json(value, formatter),
            source_partition=self._partition,
            source_offset=offset,
        )

    def _namespace(self) -> str:
        """Return the name of the offsets: the URI without user, password and options, and the namespace."""
        uri = self._config[connection.URI]
        text = uri.value if isinstance(uri, Password) else ""
        scheme, _, rest = text.partition("://")
        hosts = rest.partition("/")[0].partition("?")[0].rpartition("@")[2]
        parts = (self._config[connection.DATABASE], self._config[connection.COLLECTION])
        return f"{scheme}://{hosts}/{'.'.join(each for each in parts if each)}"

    def _close_stream(self) -> None:
        from pymongo import errors

        stream, self._stream = self._stream, None
        if stream is not None:
            with suppress(errors.PyMongoError):
                stream.close()


def _timestamp(text: str) -> Any:
    from bson import Timestamp

    return Timestamp(_seconds(text), 1)


def _seconds(text: str) -> int:
    try:
        return int(text) if text.isdecimal() else int(datetime.fromisoformat(text).timestamp())
    except ValueError:
        raise ConfigError.invalid(START_TIME, text, "Expected seconds or ISO 8601") from None


def _check_stages(text: str) -> None:
    """Check a pipeline without the driver, which a worker need not have."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"The value of {PIPELINE} is not JSON: {error}") from error
    if not isinstance(found, list):
        raise ConfigError(f"The value of {PIPELINE} must be an array of stages")


def _stages(text: str) -> list[Any]:
    _check_stages(text)
    return list(from_json(text))
