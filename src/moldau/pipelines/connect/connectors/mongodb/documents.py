"""Records as documents of MongoDB, their ids and the writes that they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import uuid4

from moldau.pipelines.connect.connectors.documents import plain
from moldau.pipelines.connect.connectors.mongodb.connection import from_json
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.schema import Schema

_IDS: Final = "com.mongodb.kafka.connect.sink.processor.id.strategy."
_WRITES: Final = "com.mongodb.kafka.connect.sink.writemodel.strategy."
ID_STRATEGIES: Final = (
    *("BsonOidStrategy", "KafkaMetaDataStrategy", "FullKeyStrategy", "ProvidedInKeyStrategy"),
    *("ProvidedInValueStrategy", "PartialKeyStrategy", "PartialValueStrategy", "UuidStrategy"),
)
WRITE_STRATEGIES: Final = (
    *("DefaultWriteModelStrategy", "ReplaceOneDefaultStrategy", "ReplaceOneBusinessKeyStrategy"),
    *("InsertOneDefaultStrategy", "UpdateOneDefaultStrategy", "UpdateOneTimestampsStrategy"),
    *("UpdateOneBusinessKeyTimestampStrategy", "DeleteOneDefaultStrategy", "DeleteOneBusinessKeyStrategy"),
)
DEFAULT_ID: Final = f"{_IDS}BsonOidStrategy"
DEFAULT_WRITE: Final = f"{_WRITES}DefaultWriteModelStrategy"


def strategy_names(names: tuple[str, ...], prefix: str) -> tuple[str, ...]:
    """Return the valid values of a setting: with and without package."""
    return (*(prefix + each for each in names), *names)


ID_NAMES: Final = strategy_names(ID_STRATEGIES, _IDS)
WRITE_NAMES: Final = strategy_names(WRITE_STRATEGIES, _WRITES)


def document_of(schema: Schema | None, value: Any, part: str) -> dict[str, Any]:
    """Return a key or value as document: a struct, a map, JSON text or BSON bytes; `DataError` otherwise."""
    if isinstance(value, bytes):
        import bson

        try:
            return dict(bson.decode(value))
        except bson.errors.InvalidBSON as error:
            raise DataError(f"The {part} is not BSON: {error}") from error
    if isinstance(value, str):
        try:
            value = from_json(value)
        except ValueError as error:
            raise DataError(f"The {part} is not JSON: {error}") from error
    found = _bson(plain(schema, value))
    if not isinstance(found, dict):
        raise DataError(f"The {part} is no document: a struct, a map, JSON or BSON is needed")
    return found


def _bson(value: Any) -> Any:
    if isinstance(value, Decimal):
        from bson import Decimal128

        return Decimal128(value)
    if isinstance(value, dict):
        return {name: _bson(each) for name, each in value.items()}
    return [_bson(each) for each in value] if isinstance(value, list) else value


class Ids:
    """Chooses the ids of documents."""

    def __init__(self, strategy: str, fields: list[str], *, overwrite: bool) -> None:
        self._strategy = strategy.rpartition(".")[2]
        self._fields = fields
        self._overwrite = overwrite

    def put(self, record: SinkRecord, document: dict[str, Any]) -> dict[str, Any]:
        """Return the document with its id; an id that it has stays, unless it is to be overwritten."""
        if "_id" in document and not self._overwrite and self._strategy != "ProvidedInKeyStrategy":
            return document
        return {"_id": self.of(record, document), **_without_id(document)}

    def of(self, record: SinkRecord, document: Mapping[str, Any] | None) -> Any:
        kind = self._strategy
        if kind == "KafkaMetaDataStrategy":
            return f"{record.original_topic}#{record.original_partition}#{record.original_offset}"
        if kind == "UuidStrategy":
            return str(uuid4())
        if kind == "BsonOidStrategy":
            from bson import ObjectId

            return ObjectId()
        if kind in ("ProvidedInValueStrategy", "PartialValueStrategy"):
            return self._from("value", document)
        return self._from("key", _key(record))

    def _from(self, part: str, document: Mapping[str, Any] | None) -> Any:
        if document is None:
            raise DataError(f"The record has no {part} that could have the document's id")
        if self._strategy == "FullKeyStrategy":
            return document
        if self._strategy.startswith("Partial"):
            return {name: document[name] for name in self._fields if name in document}
        if document.get("_id") is None:
            raise DataError(f"The {part} of the record has no field _id")
        return document["_id"]


def _key(record: SinkRecord) -> dict[str, Any] | None:
    key = record.key
    if key is None:
        return None
    if (
        record.key_schema is not None
        and record.key_schema.type.is_primitive
        and not isinstance(key, str | bytes)
    ):
        raise DataError("The key of the record is a single value: a document is needed for its id")
    return document_of(record.key_schema, key, "key")


def _without_id(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "_id"}


def write_model(strategy: str) -> Callable[[dict[str, Any]], Any]:
    """Return the function from documents with ids to the driver's writes."""
    import pymongo

    kind = strategy.rpartition(".")[2]
    by_id = "BusinessKey" not in kind

    def criteria(document: dict[str, Any]) -> dict[str, Any]:
        if by_id:
            return {"_id": document["_id"]}
        found = document["_id"]
        if not isinstance(found, dict):
            raise DataError("A business key needs a partial id strategy, which makes the id a document")
        return found

    def write(document: dict[str, Any]) -> Any:
        chosen = criteria(document) if kind != "InsertOneDefaultStrategy" else {}
        body = document if by_id else _without_id(document)
        if kind == "InsertOneDefaultStrategy":
            return pymongo.InsertOne(document)
        if kind.startswith("Delete"):
            return pymongo.DeleteOne(chosen)
        if kind.startswith(("Replace", "Default")):
            return pymongo.ReplaceOne(chosen, body, upsert=True)
        change: dict[str, Any] = {"$set": _without_id(document)}
        if "Timestamp" in kind:
            now = datetime.now(UTC)
            change["$set"]["_modifiedTS"] = now
            change["$setOnInsert"] = {"_insertedTS": now}
        return pymongo.UpdateOne(chosen, change, upsert=True)

    return write
