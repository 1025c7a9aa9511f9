"""The OpenAPI 3 description, made from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from moldau.rest.openapi.schemas import SCHEMAS, Schema
from moldau.rest.routing import Route

_VARIABLE: Final = re.compile(r"\{(\w+)\}")
_NUMBERS: Final = frozenset({"partition_id", "broker_id"})
_ERROR: Final = {"$ref": "#/components/schemas/Error"}


def document(routes: Iterable[Route], version: str) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "Moldau REST proxy",
            "version": version,
            "description": "Produce, consume and administer Kafka over HTTP.",
        },
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def operation_id(route: Route) -> str:
    """Return a name that no other route has: `getV3ClustersClusterIdTopics`."""
    words = re.findall(r"[a-zA-Z0-9]+", route.path.replace("/-", "/all"))
    return route.method.lower() + "".join(word[:1].upper() + word[1:] for word in words)


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": operation_id(route),
        "summary": route.summary,
        "tags": [route.version],
        "parameters": _parameters(route),
        "responses": {
            str(route.status): _response(route),
            "default": {"description": "Error", "content": {"application/json": {"schema": _ERROR}}},
        },
    }
    if route.description:
        operation["description"] = route.description
    if route.body:
        schema = {"$ref": f"#/components/schemas/{route.body}"}
        operation["requestBody"] = {"content": {kind: {"schema": schema} for kind in route.consumes}}
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": _path_type(name)}
        for name in _VARIABLE.findall(route.path)
    ]
    in_query = [
        {"name": each.name, "in": "query", "description": each.description, "schema": {"type": each.type}}
        for each in route.query
    ]
    return [*in_path, *in_query]


def _path_type(name: str) -> Schema:
    return {"type": "integer" if name in _NUMBERS else "string"}


def _response(route: Route) -> dict[str, Any]:
    if route.status == 204 or (route.status == 201 and not route.response):
        return {"description": "Done"}
    schema = {"$ref": f"#/components/schemas/{route.response}"} if route.response else {}
    return {"description": "Success", "content": {kind: {"schema": schema} for kind in route.produces}}
