"""The metrics endpoint of a node: `/metrics`, `/healthz` and `/readyz` on `metrics.port`.

It opens before anything else of the node and closes last, so that `/readyz` answers during start and
shutdown. A scrape reads the state of the node and renders it in slices; scrapes do not overlap.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from moldau.base.clock import Clock
from moldau.base.pool import Pool
from moldau.metrics.catalog.table import FAMILIES
from moldau.metrics.exposition import OPEN_METRICS, TEXT, Scrape, wants_open_metrics
from moldau.server.broker import Broker
from moldau.server.metrics.collectors.node import NodeCollector
from moldau.server.metrics.health import Health
from moldau.server.metrics.http import HttpEndpoint, Reply
from moldau.server.metrics.requests import RequestMetrics
from moldau.server.metrics.slices import ScrapeSlice
from moldau.server.services import NodeServices
from moldau.server.settings import BROKER

if TYPE_CHECKING:
    from moldau.server.node import Node

_ROTATE_S: Final = 60.0


class NodeMetrics:
    """`open`, then `close`. `requests` is passed to the dispatchers."""

    def __init__(self, node: Node, pool: Pool, clock: Clock) -> None:
        # Not the node's clock, which would cost a call more, twice for each request.
        self.requests = RequestMetrics(time.monotonic)
        self._node = node
        self._health = Health(node)
        self._collector = NodeCollector(node, self.requests, self._health, clock)
        routes = {"/metrics": self._metrics, "/healthz": self._healthz, "/readyz": self._readyz}
        self._endpoint = HttpEndpoint(routes, pool)
        self._scraping = asyncio.Lock()
        self._rotation: asyncio.TimerHandle | None = None

    async def open(self) -> int:
        """Listen on `metrics.port`, and return the port."""
        config = self._node.config
        host = config.text("metrics.host") or config.listeners[0].host or None
        self._collector.sampler.start()
        self._rotate()
        return await self._endpoint.open(host, config.integer("metrics.port"))

    def wired(self, services: NodeServices, broker: Broker | None) -> None:
        """Follow the parts of the node, which exist now."""
        self._collector.wired(services, broker)

    async def close(self) -> None:
        self._collector.sampler.stop()
        if self._rotation is not None:
            self._rotation.cancel()
        await self._endpoint.close()

    def _rotate(self) -> None:
        """Begin a new minute of the quantiles."""
        self.requests.rotate()
        self._collector.rotate()
        self._rotation = asyncio.get_running_loop().call_later(_ROTATE_S, self._rotate)

    # Routes.

    async def _healthz(self, headers: Mapping[str, str]) -> Reply:
        return _status("healthy", self._health.problems())

    async def _readyz(self, headers: Mapping[str, str]) -> Reply:
        return _status("ready", self._health.reasons_not_ready())

    async def _metrics(self, headers: Mapping[str, str]) -> Reply:
        open_metrics = wants_open_metrics(headers.get("accept", ""))
        async with self._scraping:
            turn = ScrapeSlice()
            scrape = Scrape(FAMILIES, is_broker=BROKER in self._node.config.process_roles)
            await self._collector.collect(scrape, turn)
            parts = []
            for part in scrape.rendered(open_metrics=open_metrics):
                parts.append(part.encode())
                await turn.pause()
            body = b"".join(parts)
            self._collector.scrape_seconds = turn.busy_seconds
        return Reply(200, OPEN_METRICS if open_metrics else TEXT, body)


def _status(word: str, reasons: list[str]) -> Reply:
    body = {"status": word if not reasons else f"not {word}", "reasons": reasons}
    return Reply(503 if reasons else 200, "application/json", json.dumps(body).encode() + b"\n")
