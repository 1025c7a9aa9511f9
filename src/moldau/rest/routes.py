"""The routes of a proxy: the table of the API, as far as the settings enable it, and its description."""

from __future__ import annotations

from moldau.rest.access import served
from moldau.rest.openapi.routes import API_ROUTES, DOCUMENT_ROUTES
from moldau.rest.routing import Route
from moldau.rest.settings import RestSettings


def routes(settings: RestSettings) -> tuple[Route, ...]:
    return (*served(API_ROUTES, settings), *DOCUMENT_ROUTES)
