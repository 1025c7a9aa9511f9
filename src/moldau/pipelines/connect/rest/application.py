"""The REST API as an ASGI application: routes, forwarding, and answers to errors."""

from __future__ import annotations

import logging
from typing import Final, Protocol

from moldau.base.errors import KafkaError
from moldau.http.asgi import Receive, Scope, Send, send_response
from moldau.http.errors import ApiError, send_error
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.rest import admin, connectors, offsets, plugins
from moldau.pipelines.connect.rest.call import Call, Response, Route, Router, raw_path
from moldau.pipelines.connect.worker.herder import Herder, NotLeader

logger = logging.getLogger(__name__)

_READ_ONLY: Final = ("GET", "HEAD")
_ROUTES: Final = (*connectors.ROUTES, *offsets.ROUTES, *plugins.ROUTES, *admin.ROUTES)


class Forwarding(Protocol):
    async def forward(self, call: Call, url: str | None) -> Response:
        """Send a request to another worker and return its answer; `ApiError` 409 if that is impossible."""
        ...


class Application:
    def __init__(
        self,
        herder: Herder,
        cluster_id: str | None,
        forwarding: Forwarding | None = None,
        more: tuple[Route, ...] = (),
    ) -> None:
        self._herder = herder
        self._cluster_id = cluster_id
        self._forwarding = forwarding
        self._router = Router((*more, *_ROUTES))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._answer(scope, receive)
        except ApiError as error:
            await send_error(send, error)
        except (KafkaError, ConnectError, TimeoutError) as error:
            await send_error(send, ApiError(500, 500, str(error) or "Request timed out"))
        else:
            status, body, content_type, headers = response
            is_head = scope["method"] == "HEAD"
            await send_response(send, status, b"" if is_head else body, content_type, headers)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        route, params = self._router.find(scope["method"], raw_path(scope))
        call = Call(self._herder, scope, receive, params, self._cluster_id)
        try:
            if scope["method"] not in _READ_ONLY:
                await self._herder.group.settled()
            return await route.handler(call)
        except NotLeader as elsewhere:
            if self._forwarding is None:
                raise ApiError(409, 409, "No worker of the group can answer the request now.") from None
            return await self._forwarding.forward(call, elsewhere.url)
