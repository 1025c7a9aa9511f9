"""A lag monitor as an HTTP service: `/metrics` and Burrow's API."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.http.asgi import Application, Receive, Scope, Send, header, send_response
from moldau.lag.alerts import Webhook
from moldau.lag.monitor import LagMonitor
from moldau.lag.serving.api import BurrowApi
from moldau.lag.serving.metrics import render


class LagService:
    """Serves one cluster; without a name, it has the cluster id as its name."""

    def __init__(
        self, monitor: LagMonitor, cluster: str | None = None, webhook: Webhook | None = None
    ) -> None:
        self._monitor = monitor
        self._cluster = cluster
        self._webhook = webhook
        self._clusters: dict[str, LagMonitor] = {}
        self._api = BurrowApi(self._clusters)

    @property
    def application(self) -> Application:
        return self._serve

    async def start(self, urls: Sequence[str]) -> None:
        await self._monitor.start()
        self._cluster = self._cluster or self._monitor.snapshot.cluster_id or "kafka"
        self._clusters[self._cluster] = self._monitor

    async def close(self) -> None:
        await self._monitor.close()
        if self._webhook is not None:
            await self._webhook.close()

    async def failed(self) -> str:
        return await self._monitor.failed()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/metrics":
            await self._api(scope, receive, send)
            return
        accept = (header(scope, b"accept") or b"").decode("latin-1")
        kind, body = render(self._cluster or "", self._monitor.snapshot, self._webhook, accept)
        await send_response(send, 200, body, kind)
