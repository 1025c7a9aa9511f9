"""The MongoDB sink: records become writes, in bulk and in order.

With an id of the record (its key, its coordinates or fields of its value), a record that is delivered again
replaces its own document: the result is exactly once. With the default, a new ObjectId, it is at least once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import groupby
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
from moldau.pipelines.connect.connectors.mongodb import connection
from moldau.pipelines.connect.connectors.mongodb.documents import (
    DEFAULT_ID,
    DEFAULT_WRITE,
    ID_NAMES,
    WRITE_NAMES,
    Ids,
    document_of,
    write_model,
)
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError, DataError, RetriableError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.sdk import SinkConnector, SinkContext, SinkTask

logger = logging.getLogger(__name__)

ID_STRATEGY: Final = "document.id.strategy"
ID_OVERWRITE: Final = "document.id.strategy.overwrite.existing"
ID_KEY_FIELDS: Final = "document.id.strategy.partial.key.projection.list"
ID_VALUE_FIELDS: Final = "document.id.strategy.partial.value.projection.list"
WRITE_STRATEGY: Final = "writemodel.strategy"
DELETE_ON_NULL: Final = "delete.on.null.values"
BATCH_SIZE: Final = "max.batch.size"
_MAX_PER_BULK: Final = 5000
_RETRY_MS: Final = 2000


def _definition() -> ConfigDef:
    high, medium, low, text = Importance.HIGH, Importance.MEDIUM, Importance.LOW, ConfigType.STRING
    definition = connection.define_connection(ConfigDef(), database_required=True)
    definition.define(
        connection.COLLECTION, text, "${topic}", high, "Collection; ${topic} is replaced. Empty: the topic."
    )
    definition.define(
        ID_STRATEGY,
        text,
        DEFAULT_ID,
        medium,
        "Class that makes the _id: BsonOidStrategy (new), KafkaMetaDataStrategy (topic#partition#offset), "
        "FullKeyStrategy, ProvidedInKeyStrategy, ProvidedInValueStrategy, PartialKeyStrategy, "
        "PartialValueStrategy, UuidStrategy.",
        validator=ValidString(ID_NAMES),
    )
    definition.define(ID_OVERWRITE, ConfigType.BOOLEAN, False, low, "Replace an _id that the value has.")
    definition.define(ID_KEY_FIELDS, ConfigType.LIST, "", low, "Fields of the key for PartialKeyStrategy.")
    definition.define(
        ID_VALUE_FIELDS, ConfigType.LIST, "", low, "Fields of the value for PartialValueStrategy."
    )
    definition.define(
        WRITE_STRATEGY,
        text,
        DEFAULT_WRITE,
        low,
        "Class that makes the write: DefaultWriteModelStrategy and ReplaceOneDefaultStrategy (replace or "
        "insert by _id), ReplaceOneBusinessKeyStrategy, InsertOneDefaultStrategy, UpdateOneDefaultStrategy, "
        "UpdateOneTimestampsStrategy, UpdateOneBusinessKeyTimestampStrategy, DeleteOneDefaultStrategy, "
        "DeleteOneBusinessKeyStrategy.",
        validator=ValidString(WRITE_NAMES),
    )
    definition.define(
        DELETE_ON_NULL,
        ConfigType.BOOLEAN,
        False,
        medium,
        "Delete the document of a record without value, by an id of the key; otherwise it is ignored.",
    )
    definition.define(
        BATCH_SIZE,
        ConfigType.INT,
        0,
        medium,
        "Maximum number of writes in a request; 0: 5000.",
        validator=Range(0),
    )
    return definition


class MongoSinkConnector(SinkConnector):
    config = _definition()

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return [self.properties] * max_tasks

    def validate(self, properties: Mapping[str, str]) -> dict[str, ConfigValue]:
        values = super().validate(properties)
        try:
            connection.check_uri(values[connection.URI].value)
        except ConfigError as error:
            values[connection.URI].errors.append(str(error))
        strategy = str(values[ID_STRATEGY].value)
        for part, name in (("PartialKey", ID_KEY_FIELDS), ("PartialValue", ID_VALUE_FIELDS)):
            if part in strategy and not values[name].value:
                values[name].errors.append(f"Required with {strategy}.")
        return values

    def task(self) -> SinkTask:
        return MongoSinkTask(self.config)

    def alter_offsets(
        self, properties: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        return True


class MongoSinkTask(SinkTask):
    def __init__(self, definition: ConfigDef) -> None:
        self._definition = definition
        self._client: Any = None

    def start(self, context: SinkContext) -> None:
        self._config = config = self._definition.parse(context.config)
        self._context = context
        self._client = connection.connect(config)
        strategy: str = config[ID_STRATEGY]
        fields = config[ID_KEY_FIELDS if "Key" in strategy else ID_VALUE_FIELDS]
        self._ids = Ids(strategy, fields, overwrite=config[ID_OVERWRITE])
        self._write = write_model(config[WRITE_STRATEGY])
        self._size: int = config[BATCH_SIZE] or _MAX_PER_BULK

    def put(self, records: Sequence[SinkRecord]) -> None:
        for topic, group in groupby(records, key=lambda each: each.topic):
            planned = [(each, write) for each in group if (write := self._planned(each)) is not None]
            for first in range(0, len(planned), self._size):
                self._bulk(self._collection(topic), planned[first : first + self._size])

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()

    def _collection(self, topic: str) -> Any:
        name = self._config[connection.COLLECTION].replace("${topic}", topic) or topic
        return self._client[self._config[connection.DATABASE]][name]

    def _planned(self, record: SinkRecord) -> Any:
        """Return the write of a record; None if it has none."""
        try:
            if record.value is None:
                return self._deletion(record)
            document = document_of(record.value_schema, record.value, "value")
            return self._write(self._ids.put(record, document))
        except DataError as error:
            self._context.report(record, error)
            return None

    def _deletion(self, record: SinkRecord) -> Any:
        if not self._config[DELETE_ON_NULL]:
            return None
        import pymongo

        return pymongo.DeleteOne({"_id": self._ids.of(record, None)})

    def _bulk(self, collection: Any, planned: Sequence[tuple[SinkRecord, Any]]) -> None:
        """Write in order; a record that is refused is reported, and the writes after it follow."""
        from pymongo import errors

        while planned:
            try:
                collection.bulk_write([write for _, write in planned], ordered=True)
                return
            except errors.BulkWriteError as error:
                refused = error.details.get("writeErrors") or []
                if not refused:
                    raise self._again(error) from error
                position = refused[0]["index"]
                message = f"MongoDB has refused the record: {refused[0].get('errmsg')}"
                self._context.report(planned[position][0], ConnectError(message))
                planned = planned[position + 1 :]
            except errors.PyMongoError as error:
                if connection.is_transient(error):
                    raise self._again(error) from error
                raise ConnectError(f"Writing to MongoDB failed: {error}") from error

    def _again(self, error: Exception) -> RetriableError:
        self._context.retry_after(_RETRY_MS)
        return RetriableError(f"MongoDB did not take the writes: {error}")
