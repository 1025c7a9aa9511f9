"""Producing with v3 in batches: entries with ids, and a result for each (status 207)."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.http.errors import ApiError
from moldau.rest.engine.producer import Result
from moldau.rest.errors import bad_request, of_kafka, unprocessable
from moldau.rest.fields import check_fields
from moldau.rest.request import Request, Response, json_response, parse
from moldau.rest.v3.records.encoding import PreparedRecord, prepare, stream_error
from moldau.rest.v3.resources import checked_cluster

_BATCH_ERROR: Final = 42208
_ID: Final = re.compile(r"[0-9a-zA-Z_-]{1,80}")

#: What became of an entry: its record and delivery, or an error.
_Outcome = tuple[PreparedRecord, asyncio.Future[list[Result]]] | ApiError


async def produce_batch(request: Request) -> Response:
    body = await request.body()
    entries = _entries(parse(body) if body.strip() else None, request.proxy.settings.batch_max_entries)
    cluster = await checked_cluster(request)
    topic = request.params["topic_name"]
    successes, failures = [], []
    outcomes = [(id, await _sent(request, topic, entry)) for id, entry in entries.items()]
    for id, outcome in outcomes:
        error = outcome if isinstance(outcome, ApiError) else None
        if not isinstance(outcome, ApiError):
            prepared, sent = outcome
            [result] = await sent
            if isinstance(result, KafkaError):
                if result.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    request.clients.forget_topic(topic)
                error = of_kafka(result)
            else:
                successes.append({"id": id, **prepared.result(cluster, topic, result)})
        if error is not None:
            failures.append({"id": id, **stream_error(error)})
    return json_response({"successes": successes, "failures": failures}, 207)


async def _sent(request: Request, topic: str, entry: dict[str, Any]) -> _Outcome:
    try:
        prepared = await prepare(request.proxy.schemas, topic, entry)
        return prepared, await request.clients.begin(topic, [prepared.record])
    except ApiError as error:
        return error
    except KafkaError as error:
        return of_kafka(error)


def _entries(body: Any, most: int) -> dict[str, dict[str, Any]]:
    """Return the entries of a batch by id; `ApiError` 42208 if the batch is not valid."""
    if body is None:
        raise unprocessable(_BATCH_ERROR, "Request body is empty. Data is required.")
    check_fields("ProduceBatch", body)
    entries = body.get("entries") if isinstance(body, dict) else None
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise bad_request("entries must be a list of records.")
    found: dict[str, dict[str, Any]] = {}
    for each in entries:
        id = each.get("id")
        if not isinstance(id, str) or not _ID.fullmatch(id):
            raise unprocessable(_BATCH_ERROR, "Batch entry identifier is not a valid string.")
        if id in found:
            raise unprocessable(_BATCH_ERROR, "Batch entry IDs are not distinct.")
        found[id] = {name: value for name, value in each.items() if name != "id"}
    if not found:
        raise unprocessable(_BATCH_ERROR, "Empty batch.")
    if len(found) > most:
        raise unprocessable(_BATCH_ERROR, "Too many entries in batch.")
    return found
