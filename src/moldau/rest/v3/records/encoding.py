"""Records of v3 requests: from JSON to keys, values, headers and timestamps of Kafka records."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final, NamedTuple

from moldau.http.errors import ApiError
from moldau.rest import errors
from moldau.rest.engine.producer import Delivery, OutgoingRecord
from moldau.rest.errors import bad_request
from moldau.rest.fields import shown
from moldau.rest.formats import plain
from moldau.rest.formats.schemas import TYPES, SchemaFormats, UsedSchema
from moldau.rest.openapi.schemas import SCHEMAS
from moldau.rest.v3.resources import instant
from moldau.rest.values import INT32, is_number, is_text, milliseconds

_PLAIN: Final = {"BINARY": plain.BINARY, "JSON": plain.JSON, "STRING": plain.STRING}
_WITH_SCHEMA: Final = {name.upper(): name for name in TYPES}
_STRATEGIES: Final = frozenset({"TOPIC_NAME", "RECORD_NAME", "TOPIC_RECORD_NAME"})
_RECORD: Final = frozenset(SCHEMAS["ProduceRecord"]["properties"])
_DATA: Final = frozenset(SCHEMAS["RecordData"]["properties"])
_HEADER: Final = frozenset({"name", "value"})
_SCHEMA_FIELDS: Final = ("subject", "subject_name_strategy", "schema_id", "schema_version", "schema")


class PreparedRecord(NamedTuple):
    """A record to send, and what the response says of its key and value."""

    record: OutgoingRecord
    key: dict[str, Any] | None
    value: dict[str, Any] | None

    def result(self, cluster: str, topic: str, delivery: Delivery) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "cluster_id": cluster,
            "topic_name": topic,
            "partition_id": delivery.partition,
            "offset": delivery.offset,
        }
        if delivery.timestamp >= 0:
            fields["timestamp"] = instant(delivery.timestamp)
        if self.key is not None:
            fields["key"] = self.key
        if self.value is not None:
            fields["value"] = self.value
        return fields


async def prepare(schemas: SchemaFormats, topic: str, entry: Any) -> PreparedRecord:
    """Serialize a record; `ApiError` says what is wrong with it."""
    if not isinstance(entry, dict):
        raise bad_request("Error processing JSON: a record is not an object.")
    _check_fields(entry, _RECORD)
    partition = entry.get("partition_id")
    if partition is None:
        partition = -1
    elif isinstance(partition, bool) or not isinstance(partition, int):
        raise bad_request("partition_id is not a number.")
    elif not is_number(partition, INT32):
        raise errors.partition_not_found()
    key, key_shown = await _side(schemas, topic, entry.get("key"), is_key=True)
    value, value_shown = await _side(schemas, topic, entry.get("value"), is_key=False)
    record = OutgoingRecord(
        key, value, partition, _timestamp(entry.get("timestamp")), _headers(entry.get("headers"))
    )
    return PreparedRecord(record, key_shown, value_shown)


def stream_error(error: ApiError) -> dict[str, Any]:
    """Return an error as it is written into a stream of results: constraints have their code in the text."""
    if error.status == 422:
        message = f"Error: {error.error_code} : {error.message}"
        return {"error_code": 422, "message": message.partition("\n")[0]}
    return {"error_code": error.error_code, "message": error.message.partition("\n")[0]}


async def _side(
    schemas: SchemaFormats, topic: str, data: Any, *, is_key: bool
) -> tuple[bytes | None, dict[str, Any] | None]:
    """Return a key or value, and what the response says of it."""
    if data is None:
        return None, None
    if not isinstance(data, dict):
        raise bad_request(f"Error processing JSON: the {'key' if is_key else 'value'} is not an object.")
    _check_fields(data, _DATA)
    name = data.get("type")
    kind = _PLAIN.get(name) if isinstance(name, str) else None
    if kind is not None:
        if any(data.get(field) is not None for field in _SCHEMA_FIELDS):
            raise _misplaced(name, data)
        encoded = plain.encode(kind, data.get("data"))
        return encoded, {"type": name, "size": -1 if encoded is None else len(encoded)}
    used = await _schema(schemas, topic, name, data, is_key)
    content = data.get("data")
    encoded = None if content is None else used.encode(content)
    shown = {
        "type": used.format.upper(),
        "subject": used.subject,
        "schema_id": used.id,
        "schema_version": used.version,
        "size": -1 if encoded is None else len(encoded),
    }
    return encoded, shown


def _check_fields(found: dict[str, Any], known: frozenset[str]) -> None:
    if not found.keys() <= known:
        field = next(each for each in found if each not in known)
        raise bad_request(f'Unrecognized field "{shown(field)}"')


def _misplaced(name: Any, data: dict[str, Any]) -> ApiError:
    field = next(each for each in _SCHEMA_FIELDS if data.get(each) is not None)
    return bad_request(f"Error processing JSON: 'type={name}' cannot be used with '{field}'.")


async def _schema(
    schemas: SchemaFormats, topic: str, name: Any, data: dict[str, Any], is_key: bool
) -> UsedSchema:
    """Return the schema of the data: by id, by version, by text, or the latest of its subject."""
    subject, strategy = data.get("subject"), data.get("subject_name_strategy")
    id, version, text = data.get("schema_id"), data.get("schema_version"), data.get("schema")
    for field, value in (("type", name), ("subject", subject), ("subject_name_strategy", strategy)):
        if value is not None and not is_text(value):
            raise bad_request(f"Error processing JSON: {field} must be a string.")
    if name is not None and name not in _WITH_SCHEMA:
        raise bad_request(f"Error processing JSON: the type {name[:100]} does not exist.")
    if sum(each is not None for each in (id, version, text)) > 1:
        raise bad_request("Only one of 'schema_id', 'schema_version' or 'schema' can be used.")
    if subject is not None and strategy is not None:
        raise bad_request("Only one of 'subject_name_strategy' or 'subject' can be used.")
    if strategy is not None and strategy not in _STRATEGIES:
        raise bad_request(f"The subject_name_strategy {strategy[:100]} does not exist.")
    if text is not None:
        if name is None:
            raise bad_request("Unsupported argument: 'schema' needs 'type'.")
        return await schemas.registered(
            _WITH_SCHEMA[name], text, topic, is_key=is_key, subject=subject, strategy=strategy
        )
    if name is not None:
        field = "schema_id" if id is not None else "schema_version"
        raise bad_request(f"'{field}' cannot be used with 'type={name}', which needs 'schema'.")
    if id is not None:
        return await schemas.by_id(id, topic, is_key=is_key, subject=subject, strategy=strategy)
    return await schemas.by_version(version, topic, is_key=is_key, subject=subject, strategy=strategy)


def _timestamp(value: Any) -> int:
    if value is None:
        return 0
    try:
        time = milliseconds(value)
    except (TypeError, ValueError):
        raise bad_request("timestamp must be a time in ISO 8601.") from None
    if time < 0:
        raise bad_request("timestamp must not be before 1970.")
    return time


def _headers(value: Any) -> list[tuple[str, str | bytes | None]] | None:
    if not value:
        return None
    found: list[tuple[str, str | bytes | None]] = []
    try:
        for each in value:
            _check_fields(each, _HEADER)
            name, content = each["name"], each.get("value")
            if not is_text(name):
                raise ValueError
            found.append((name, None if content is None else base64.b64decode(content, validate=True)))
    except (TypeError, KeyError, AttributeError, binascii.Error, ValueError):
        raise bad_request("A header must have a name and a value in base64.") from None
    return found
