"""The table of all routes. It serves requests, the OpenAPI description and the endpoint table of the docs."""

from __future__ import annotations

from moldau.rest.openapi.routes import API_ROUTES, DOCUMENT_ROUTES

ROUTES = (*API_ROUTES, *DOCUMENT_ROUTES)
