"""Producing with v2: a list of records in one embedded format, to a topic or a partition."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.http.errors import ApiError
from moldau.rest import errors
from moldau.rest.engine.producer import OutgoingRecord, Result
from moldau.rest.fields import unrecognized
from moldau.rest.formats import plain
from moldau.rest.formats.schemas import SchemaFormats, UsedSchema
from moldau.rest.openapi.schemas import SCHEMAS
from moldau.rest.request import Request, Response, parse
from moldau.rest.v2 import media
from moldau.rest.v2.media import EMBEDDED
from moldau.rest.values import INT32

_FORMATS = tuple(EMBEDDED)
#: A client may not choose a partition in the path.
_ANY = -1
_FIELDS = frozenset(SCHEMAS["ProduceV2"]["properties"])
_RECORD_FIELDS = frozenset(SCHEMAS["ProduceV2"]["properties"]["records"]["items"]["properties"])


async def produce(request: Request) -> Response:
    return await _produce(request, _ANY)


async def produce_to_partition(request: Request) -> Response:
    return await _produce(request, request.path_number("partition_id"))


async def _produce(request: Request, partition: int) -> Response:
    kind = EMBEDDED[media.check_content_type(request.scope, _FORMATS)]
    media.accepted(request.scope, (media.V2, *media.EMBEDDED))
    body = parse(await request.body())
    if not isinstance(body, dict) or not isinstance(body.get("records"), list):
        raise errors.unprocessable(422, "records must not be empty")
    records = body["records"]
    if not records:
        raise errors.unprocessable(422, "records must not be empty")
    _check_fields(body, records)
    topic = request.params["topic_name"]
    used = _Used(None, None)
    if kind in plain.PLAIN:
        outgoing = _plain_records(kind, records, partition)
    else:
        used = await _schemas(request.proxy.schemas, kind, topic, body)
        outgoing = _schema_records(request.proxy.schemas, records, partition, used)
    try:
        results = await request.clients.send(topic, outgoing)
    except KafkaError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise errors.topic_not_found() from None
        raise
    return _response(request, topic, results, used)


def _check_fields(body: dict[str, Any], records: list[Any]) -> None:
    """Raise `ApiError` 422 for an unknown field; quick, because requests may have many records."""
    for field in body.keys() - _FIELDS:
        raise unrecognized(field)
    for each in records:
        if isinstance(each, dict) and not each.keys() <= _RECORD_FIELDS:
            raise unrecognized(next(field for field in each if field not in _RECORD_FIELDS))


class _Used:
    """The schemas of a request's keys and values."""

    __slots__ = ("key", "value")

    def __init__(self, key: UsedSchema | None, value: UsedSchema | None) -> None:
        self.key, self.value = key, value


def _plain_records(kind: str, records: list[Any], partition: int) -> list[OutgoingRecord]:
    """Encode records; a loop for each format, because large requests spend their time here."""
    outgoing = []
    try:
        if kind == plain.BINARY:
            decode = base64.b64decode
            for each in records:
                key, value = each.get("key"), each.get("value")
                outgoing.append(
                    OutgoingRecord(
                        None if key is None else decode(key, None, True),
                        None if value is None else decode(value, None, True),
                        _partition(each, partition),
                    )
                )
        else:
            encode = plain.encode_nested
            for each in records:
                key, value = each.get("key"), each.get("value")
                outgoing.append(
                    OutgoingRecord(
                        None if key is None else encode(key),
                        None if value is None else encode(value),
                        _partition(each, partition),
                    )
                )
    except AttributeError:
        raise errors.unprocessable(422, "A record is not an object.") from None
    except (binascii.Error, ValueError, TypeError):
        which = "key" if not _is_base64(key) else "value"
        raise errors.unprocessable(422, f"Record {which} contains invalid base64 encoding") from None
    return outgoing


def _is_base64(data: Any) -> bool:
    try:
        return data is None or base64.b64decode(data, validate=True) is not None
    except (binascii.Error, ValueError, TypeError):
        return False


def _partition(record: dict[str, Any], partition: int) -> int:
    chosen = record.get("partition")
    if chosen is None:
        return partition
    if isinstance(chosen, bool) or not isinstance(chosen, int) or chosen < 0:
        raise errors.unprocessable(422, "partition must be greater than or equal to 0")
    if chosen > INT32:
        raise errors.unprocessable(422, f"partition must be less than or equal to {INT32}")
    return chosen


async def _schemas(formats: SchemaFormats, kind: str, topic: str, body: dict[str, Any]) -> _Used:
    found: list[UsedSchema | None] = []
    for side in ("key", "value"):
        number, text = body.get(f"{side}_schema_id"), body.get(f"{side}_schema")
        if number is None and text is None:
            found.append(None)
        elif number is not None:
            found.append(await formats.by_id(number, topic, is_key=side == "key", kind=kind))
        else:
            found.append(await formats.registered(kind, text, topic, is_key=side == "key"))
    return _Used(found[0], found[1])


def _schema_records(
    formats: SchemaFormats, records: list[Any], partition: int, used: _Used
) -> list[OutgoingRecord]:
    outgoing = []
    for each in records:
        if not isinstance(each, dict):
            raise errors.unprocessable(422, "A record is not an object.")
        key, value = each.get("key"), each.get("value")
        if key is not None and used.key is None:
            raise errors.unprocessable(42201, "Request includes keys but does not include key schema")
        if value is not None and used.value is None:
            raise errors.unprocessable(42202, "Request includes values but does not include value schema")
        outgoing.append(
            OutgoingRecord(
                None if used.key is None or key is None else used.key.encode(key),
                None if used.value is None or value is None else used.value.encode(value),
                _partition(each, partition),
            )
        )
    return outgoing


def _response(request: Request, topic: str, results: list[Result], used: _Used) -> Response:
    """Write the response by hand: large requests spend much of their time here."""
    status, parts = 200, []
    for result in results:
        if isinstance(result, tuple):
            where = f'"partition":{result.partition},"offset":{result.offset}'
            parts.append(f'{{{where},"error_code":null,"error":null}}')
            continue
        failure = errors.of_kafka(result)
        status = max(status, _status(failure))
        if result.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            request.clients.forget_topic(topic)
        why = f'"error_code":{_code(result, failure)},"error":{json.dumps(failure.message)}'
        parts.append(f'{{"partition":null,"offset":null,{why}}}')
    key = "null" if used.key is None else str(used.key.id)
    value = "null" if used.value is None else str(used.value.id)
    text = f'{{"offsets":[{",".join(parts)}],"key_schema_id":{key},"value_schema_id":{value}}}'
    return Response(status, text.encode(), media.V2.encode("ascii"))


def _status(failure: ApiError) -> int:
    """Return the status of a response with a failed record: of its errors, only the login fails a request."""
    return failure.status if failure.status in (401, 403) else 200


def _code(error: KafkaError, failure: ApiError) -> int:
    """Return the code of a failed record: refusals other than of users are 50002 or, if retriable, 50003."""
    if failure.error_code in (errors.KAFKA_AUTHENTICATION, errors.KAFKA_AUTHORIZATION):
        return failure.error_code
    return errors.KAFKA_RETRIABLE if error.code.retriable else errors.KAFKA_ERROR
