"""The REST proxy as a service: finds the route of a request, the clients of its user, and answers errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from moldau.base.daemon_threads import DaemonThreads
from moldau.base.errors import KafkaError
from moldau.base.json_log import event
from moldau.http.asgi import CREDENTIALS, JSON, Application, Receive, Scope, Send, send_response
from moldau.http.errors import ApiError, send_error
from moldau.rest.engine.clients import ClientPool, Clients
from moldau.rest.engine.instances import Instances
from moldau.rest.engine.streams import Streams
from moldau.rest.errors import of_kafka
from moldau.rest.formats.schemas import SchemaFormats
from moldau.rest.request import Request, Response, check_json
from moldau.rest.routes import routes
from moldau.rest.routing import Router
from moldau.rest.settings import RestSettings

logger = logging.getLogger(__name__)

_V2_ERROR: Final = b"application/vnd.kafka.v2+json"
_EXPIRY_INTERVAL_S: Final = 1.0
#: Consumers leave their groups and records are delivered within this time at the end.
_CLOSE_S: Final = 5.0


class RestProxy:
    """Implements `moldau.http.run.Service`."""

    def __init__(self, settings: RestSettings, version: str) -> None:
        self.settings = settings
        self.version = version
        self._router = Router(routes(settings))
        self._expiring: asyncio.Future[None] | None = None

    @property
    def application(self) -> Application:
        return self._serve

    async def start(self, urls: Sequence[str]) -> None:
        """Create the clients; `KafkaError` if the cluster cannot be reached with the proxy's own login."""
        self._pool = DaemonThreads(self.settings.consumer_threads, "moldau-rest")
        self.clients = ClientPool(self.settings)
        self.instances = Instances(self.settings, self._pool)
        self.streams = Streams(self.instances)
        self.schemas = SchemaFormats(self.settings.registry)
        self._expiring = asyncio.ensure_future(self._expire())
        await self.clients.connect()

    async def close(self) -> None:
        if self._expiring is None:
            return
        self._expiring.cancel()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self.streams.close()
                await self.instances.close()
                await self.clients.close()
                await self.schemas.close()
        except TimeoutError:
            logger.warning(
                "The cluster did not confirm within %.0f s that consumers have left.",
                _CLOSE_S,
                extra=event("rest.consumers_not_closed"),
            )
        self._pool.shutdown()

    async def failed(self) -> str:
        await asyncio.Event().wait()
        return ""

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(_EXPIRY_INTERVAL_S)
            self.instances.expire()
            self.clients.expire()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
        is_v3 = path.startswith("/v3")
        try:
            route, params = self._router.find(scope["method"], path)
            if is_v3 and route.consumes:
                check_json(scope)
            clients = await self.clients.of(scope.get(CREDENTIALS))
            clients.users += 1
            try:
                request = Request(scope, receive, send, params, self, clients, route.body)
                response = await route.handler(request)
            except KafkaError as error:
                raise self._refusal(clients, error) from None
            finally:
                clients.users -= 1
                clients.last_used = asyncio.get_running_loop().time()
        except ApiError as error:
            await send_error(send, error, JSON if is_v3 else _V2_ERROR)
        except KafkaError as error:
            await send_error(send, of_kafka(error), JSON if is_v3 else _V2_ERROR)
        else:
            if response is not None:
                await _answer(scope, send, response)

    def _refusal(self, clients: Clients, error: KafkaError) -> ApiError:
        failure = of_kafka(error)
        if failure.status != 401:
            return failure
        return ApiError(401, failure.error_code, failure.message, self.clients.refused(clients))


async def _answer(scope: Scope, send: Send, response: Response) -> None:
    status, body, content_type, headers = response
    await send_response(send, status, b"" if scope["method"] == "HEAD" else body, content_type, headers)
