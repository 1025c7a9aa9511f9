"""The metrics endpoint of a node: `/metrics`, `/healthz` and `/readyz` on `metrics.port`.

It opens before anything else of the node and closes last, so that `/readyz` answers during start and
shutdown. A scrape reads the state of the node and renders it in slices; scrapes do not overlap.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from moldau.base.clock import Clock
from moldau.base.pool import Pool
from moldau.metrics.catalog import process, requests
from moldau.metrics.catalog.table import FAMILIES
from moldau.metrics.exposition import OPEN_METRICS, TEXT, Scrape, wants_open_metrics
from moldau.server.metrics.collectors.process import collect_process
from moldau.server.metrics.collectors.requests import collect_requests
from moldau.server.metrics.collectors.traffic import collect_traffic
from moldau.server.metrics.health import Health
from moldau.server.metrics.http import HttpEndpoint, Reply
from moldau.server.metrics.loop import LoopSampler
from moldau.server.metrics.requests import RequestMetrics
from moldau.server.metrics.slices import ScrapeSlice

if TYPE_CHECKING:
    from moldau.server.node import Node

_ROTATE_S: Final = 60.0


class NodeMetrics:
    """`open`, then `close`. `requests` is passed to the dispatchers."""

    def __init__(self, node: Node, clock: Clock, pool: Pool) -> None:
        self.requests = RequestMetrics(clock.monotonic)
        self._node = node
        self._clock = clock
        self._health = Health(node)
        self._loop = LoopSampler(node.loop_lag)
        routes = {"/metrics": self._metrics, "/healthz": self._healthz, "/readyz": self._readyz}
        self._endpoint = HttpEndpoint(routes, pool)
        self._scraping = asyncio.Lock()
        self._scrape_seconds = 0.0
        self._rotation: asyncio.TimerHandle | None = None

    async def open(self) -> int:
        """Listen on `metrics.port`, and return the port."""
        config = self._node.config
        host = config.text("metrics.host") or config.listeners[0].host or None
        self._loop.start()
        self._rotate()
        return await self._endpoint.open(host, config.integer("metrics.port"))

    async def close(self) -> None:
        self._loop.stop()
        if self._rotation is not None:
            self._rotation.cancel()
        await self._endpoint.close()

    def _rotate(self) -> None:
        """Begin a new minute of the quantiles."""
        self.requests.rotate()
        self._loop.lag.rotate()
        self._rotation = asyncio.get_running_loop().call_later(_ROTATE_S, self._rotate)

    # Routes.

    async def _healthz(self, headers: Mapping[str, str]) -> Reply:
        return _status("healthy", self._health.problems())

    async def _readyz(self, headers: Mapping[str, str]) -> Reply:
        return _status("ready", self._health.reasons_not_ready())

    async def _metrics(self, headers: Mapping[str, str]) -> Reply:
        open_metrics = wants_open_metrics(headers.get("accept", ""))
        async with self._scraping:
            turn = ScrapeSlice(self._clock)
            scrape = Scrape(FAMILIES)
            await self._collect(scrape, turn)
            parts = []
            for part in scrape.rendered(open_metrics=open_metrics):
                parts.append(part.encode())
                await turn.pause()
            body = b"".join(parts)
            self._scrape_seconds = turn.busy_seconds
        return Reply(200, OPEN_METRICS if open_metrics else TEXT, body)

    async def _collect(self, scrape: Scrape, turn: ScrapeSlice) -> None:
        node, config = self._node, self._node.config
        broker = node.broker_role
        traffic = None if broker is None else broker.replicas.traffic
        collect_process(scrape, self._loop)
        idle = self._loop.idle_ratio
        scrape.add(requests.HANDLER_IDLE, idle)
        scrape.add(requests.NETWORK_IDLE, idle)
        scrape.add(process.SCRAPE_SECONDS, self._scrape_seconds)
        await collect_requests(scrape, turn, self.requests, traffic)
        if traffic is not None:
            await collect_traffic(scrape, turn, traffic, config.integer("metrics.max.topics"))


def _status(word: str, reasons: list[str]) -> Reply:
    body = {"status": word if not reasons else f"not {word}", "reasons": reasons}
    return Reply(503 if reasons else 200, "application/json", json.dumps(body).encode() + b"\n")
