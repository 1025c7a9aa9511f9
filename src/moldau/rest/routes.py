"""The table of all routes. It serves requests, the OpenAPI description and the endpoint table of the docs."""

from __future__ import annotations

from moldau.rest.v2.routes import V2_ROUTES
from moldau.rest.v3.routes import V3_ROUTES

ROUTES = (*V2_ROUTES, *V3_ROUTES)
