"""The fields that bodies of requests may have: those of the OpenAPI description.

Others are refused, as in Confluent's proxy: with a misspelled `value`, a record would be written without one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from moldau.http.errors import ApiError
from moldau.rest.errors import unprocessable
from moldau.rest.openapi.schemas import SCHEMAS, Schema

#: Older names, which are understood but not described.
_OLDER: Final = {"ConsumerInstanceV2": frozenset({"id", "requestWaitMs", "responseMinBytes"})}


def check_fields(name: str, body: Any) -> None:
    """Raise `ApiError` 422 if a body has a field that its schema does not describe."""
    known = _OLDER.get(name)
    if known is not None and isinstance(body, dict):
        body = {field: value for field, value in body.items() if field not in known}
    field = _unknown(SCHEMAS[name], body)
    if field is not None:
        raise unrecognized(field)


def unrecognized(field: str) -> ApiError:
    return unprocessable(422, f"Unrecognized field: {shown(field)}")


def shown(field: str) -> str:
    """Return the name of a field for a message; it may have half of a surrogate pair."""
    return field[:100].encode("utf-8", "replace").decode()


def _unknown(schema: Schema, value: Any) -> str | None:
    """Return the first field that the schema does not describe."""
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rpartition("/")[2]]
    described: Schema = {} if "additionalProperties" in schema else schema.get("properties", {})
    inner: Iterable[tuple[Schema, Any]] = ()
    if isinstance(value, list) and "items" in schema:
        inner = ((schema["items"], each) for each in value)
    elif isinstance(value, dict) and described:
        for field in value:
            if field not in described:
                return str(field)
        inner = ((described[field], each) for field, each in value.items())
    return next((field for each in inner if (field := _unknown(*each)) is not None), None)
