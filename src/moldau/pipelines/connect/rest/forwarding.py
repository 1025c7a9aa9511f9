"""Sends requests to other workers: those of users, as they were received, and the signed ones of workers.

A user's request is forwarded at most twice, as by Kafka Connect: to the leader (`forward=true`), and from
there to the worker that runs the connector or task (`forward=false`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from moldau.http.asgi import JSON
from moldau.http.errors import ApiError
from moldau.pipelines.connect.rest.call import Call, Response
from moldau.pipelines.connect.storage.types import Properties

if TYPE_CHECKING:
    from ssl import SSLContext

    from moldau.pipelines.connect.worker.group.fencing import Fencing
    from moldau.pipelines.connect.worker.group.session_key import SessionKeys

logger = logging.getLogger(__name__)

_TIMEOUT_S: Final = 90.0
_CONNECT_S: Final = 10.0
_HEADERS: Final = ("content-type", "authorization", "accept")
_UNKNOWN: Final = (
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
)
_CONFLICT: Final = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"


class Forwarding:
    """Implements `herder.Workers` and `application.Forwarding`."""

    def __init__(self, keys: SessionKeys, fencing: Fencing, tls: SSLContext | None) -> None:
        self._keys = keys
        self.fencing = fencing
        self._tls = tls
        self._client: Any = None

    async def forward(self, call: Call, url: str | None) -> Response:
        """Send a user's request to another worker and return its answer."""
        hop = (call.queries("forward") or [""])[0].lower()
        if hop == "false":
            raise ApiError(409, 409, _CONFLICT)
        if url is None:
            raise ApiError(409, 409, _UNKNOWN)
        query = [(name, value) for name, value in call.all_queries() if name != "forward"]
        query.append(("forward", "true" if not hop else "false"))
        path = call.scope["raw_path"].decode("latin-1").lstrip("/")
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in call.scope["headers"]
            if name.decode("latin-1") in _HEADERS
        }
        target = f"{url.rstrip('/')}/{path}?{urlencode(query)}"
        answer = await self._request(call.scope["method"], target, await call.body(), headers)
        location = answer.headers.get("location")
        more = () if location is None else ((b"location", location.encode("latin-1")),)
        kind = answer.headers.get("content-type")
        return Response(answer.status_code, answer.content, kind.encode() if kind else None, more)

    async def put_tasks(self, url: str | None, connector: str, configs: Sequence[Properties]) -> None:
        """Ask the leader to store the configurations of a connector's tasks."""
        await self._signed("POST", url, f"connectors/{quote(connector, safe='')}/tasks", list(configs))

    async def fence(self, url: str | None, connector: str) -> None:
        """Ask the leader to fence earlier tasks of a connector."""
        await self._signed("PUT", url, f"connectors/{quote(connector, safe='')}/fence", None)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _signed(self, method: str, url: str | None, path: str, value: Any) -> None:
        if url is None:
            raise ApiError(409, 409, _UNKNOWN)
        body = b"" if value is None else json.dumps(value).encode()
        headers = {"content-type": JSON.decode(), **self._keys.sign(body)}
        answer = await self._request(method, f"{url.rstrip('/')}/{path}", body, headers)
        if answer.status_code >= 300:
            raise ApiError(answer.status_code, answer.status_code, answer.text)

    async def _request(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Any:
        import httpx2

        if self._client is None:
            self._client = httpx2.AsyncClient(
                verify=True if self._tls is None else self._tls,
                trust_env=False,
                timeout=httpx2.Timeout(_TIMEOUT_S, connect=_CONNECT_S),
            )
        try:
            return await self._client.request(method, url, content=body, headers=dict(headers))
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            logger.warning("A request could not be forwarded to the worker %s: %r", url, error)
            raise ApiError(500, 500, f"IO Error trying to forward REST request: {error}") from None
