"""The routes of the description. They are not part of it."""

from __future__ import annotations

import functools
from typing import Final

from moldau.http.asgi import encode_json
from moldau.rest.openapi.document import document
from moldau.rest.openapi.page import page
from moldau.rest.request import Request, Response
from moldau.rest.routing import Route
from moldau.rest.v2.routes import V2_ROUTES
from moldau.rest.v3.routes import V3_ROUTES

#: The described routes.
API_ROUTES: Final = (*V2_ROUTES, *V3_ROUTES)
_HTML: Final = b"text/html; charset=utf-8"


@functools.cache
def _document(version: str) -> bytes:
    return encode_json(document(API_ROUTES, version))


@functools.cache
def _page(version: str) -> bytes:
    return page(API_ROUTES, version).encode()


async def describe(request: Request) -> Response:
    return Response(200, _document(request.proxy.version))


async def describe_in_yaml(request: Request) -> Response:
    """Every JSON document is a YAML document."""
    return Response(200, _document(request.proxy.version), b"application/yaml")


async def browse(request: Request) -> Response:
    return Response(200, _page(request.proxy.version), _HTML)


DOCUMENT_ROUTES: Final = (
    Route("GET", "/openapi.json", "OpenAPI description", describe),
    Route("GET", "/v3/openapi.json", "OpenAPI description", describe),
    Route("GET", "/v3/openapi.yaml", "OpenAPI description", describe_in_yaml),
    Route("GET", "/docs", "All endpoints, to browse", browse, produces=("text/html",)),
)
