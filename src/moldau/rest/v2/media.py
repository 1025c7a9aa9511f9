"""Media types of v2: which one a client sends and which one it accepts."""

from __future__ import annotations

from typing import Any, Final

from moldau.http.asgi import Scope, encode_json, header
from moldau.http.errors import ApiError
from moldau.rest.request import Response

V2: Final = "application/vnd.kafka.v2+json"
#: The embedded format of each media type.
EMBEDDED: Final = {
    "application/vnd.kafka.binary.v2+json": "binary",
    "application/vnd.kafka.json.v2+json": "json",
    "application/vnd.kafka.avro.v2+json": "avro",
    "application/vnd.kafka.jsonschema.v2+json": "jsonschema",
    "application/vnd.kafka.protobuf.v2+json": "protobuf",
}
ALL: Final = (V2, *EMBEDDED)
_UNSUPPORTED: Final = "HTTP 415 Unsupported Media Type"
_NOT_ACCEPTABLE: Final = "HTTP 406 Not Acceptable"
_WILDCARDS: Final = frozenset({"*/*", "application/*"})


def content_type(scope: Scope) -> str:
    """Return the media type of the body without its parameters."""
    value = header(scope, b"content-type") or b""
    return value.decode("latin-1").partition(";")[0].strip().lower()


def check_content_type(scope: Scope, allowed: tuple[str, ...]) -> str:
    """Return the media type of the body; `ApiError` 415 if it is another one."""
    found = content_type(scope)
    if found not in allowed:
        raise ApiError(415, 415, _UNSUPPORTED)
    return found


def accepted(scope: Scope, offered: tuple[str, ...]) -> str:
    """Return the first offered type with the highest quality; `ApiError` 406 if none is accepted."""
    value = header(scope, b"accept")
    if value is None:
        return offered[0]
    best, best_quality = None, 0.0
    for each in value.decode("latin-1").lower().split(","):
        kind, _, parameters = each.partition(";")
        kind, quality = kind.strip(), _quality(parameters)
        if quality <= best_quality:
            continue
        if kind in _WILDCARDS:
            best, best_quality = offered[0], quality
        elif kind in offered:
            best, best_quality = kind, quality
    if best is None:
        raise ApiError(406, 406, _NOT_ACCEPTABLE)
    return best


def _quality(parameters: str) -> float:
    for each in parameters.split(";"):
        name, _, value = each.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def v2_response(value: Any, status: int = 200, media_type: str = V2) -> Response:
    return Response(status, encode_json(value), media_type.encode("ascii"))
