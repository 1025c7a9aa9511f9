"""The shape of v3's resources: kind, metadata with links, collections; and checks that all handlers make."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.admin.topic_types import TopicDescription
from moldau.rest.errors import bad_request, invalid_payload, not_found
from moldau.rest.request import Request

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CYCLE_S: Final = 146_097 * 86_400


def url(request: Request, *segments: object) -> str:
    path = "/".join(quote(str(each), safe="-._~:") for each in segments)
    return f"{request.base_url}/v3/clusters/{path}" if path else f"{request.base_url}/v3/clusters"


def related(request: Request, *segments: object) -> dict[str, str]:
    return {"related": url(request, *segments)}


def resource(
    request: Request, kind: str, path: Sequence[object], crn: Sequence[tuple[str, object]], /, **fields: Any
) -> dict[str, Any]:
    """Return a resource; `crn` has the components of its Confluent resource name (CRN)."""
    name = "/".join(part if value is None else f"{part}={value}" for part, value in crn)
    metadata = {"self": url(request, *path), "resource_name": f"crn:///{name}" if name else None}
    return {"kind": kind, "metadata": metadata, **fields}


def collection(kind: str, self_url: str, data: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"self": self_url, "next": None}, "data": data}


def instant(timestamp_ms: int) -> str:
    """Return a time as Java's `Instant` writes it: milliseconds only if there are any."""
    seconds, milliseconds = divmod(timestamp_ms, 1000)
    text = _second(seconds)
    return f"{text}.{milliseconds:03}Z" if milliseconds else f"{text}Z"


@functools.lru_cache(maxsize=256)
def _second(seconds: int) -> str:
    """Return a time without its milliseconds; records that follow each other often share it.

    The calendar repeats every 400 years, which serves years that `datetime` does not have.
    """
    cycles, within = divmod(seconds, _CYCLE_S)
    time = _EPOCH + timedelta(seconds=within)
    year = time.year + 400 * cycles
    return f"{'+' if year > 9999 else ''}{year:04}-{time:%m-%dT%H:%M:%S}"


def config_text(value: Any) -> str:
    """Return the value of a config, which may be given as a number or boolean; `ApiError` 400 for others."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise bad_request("The value of a config must be a string, a number or a boolean.")
    return str(value)


async def checked_cluster(request: Request) -> str:
    """Return the cluster id of the path; `ApiError` 404 if it is not the proxy's cluster."""
    wanted = request.params["cluster_id"]
    if wanted != await request.clients.cluster_id():
        raise not_found(f"Cluster {wanted} cannot be found.")
    return wanted


async def described_topic(request: Request) -> TopicDescription:
    """Return the topic of the path; `KafkaError` if it does not exist, which is 40403."""
    name = request.params["topic_name"]
    found = (await request.clients.admin.describe_topics([name]))[name]
    if isinstance(found, KafkaError):
        if found.code is ErrorCode.INVALID_TOPIC_EXCEPTION:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        raise found
    return found


async def json_object(
    request: Request, missing: str = "Request body is empty. Data is required."
) -> dict[str, Any]:
    """Return the object of the body; `ApiError` 42206 without a body."""
    body = await request.json()
    if body is None:
        raise invalid_payload(missing)
    if not isinstance(body, dict):
        raise bad_request("The body is not an object.")
    return body
