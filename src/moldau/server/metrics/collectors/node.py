"""One scrape: the parts of a node in turn, as far as they exist.

Before the node is wired and while it stops, only the process and the requests are measured; all other
families are present without samples, or 0. A node without the broker role does not show those of brokers.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from moldau.base.clock import Clock
from moldau.metrics.catalog import controller, exporter, process, raft, requests
from moldau.metrics.exposition import Scrape
from moldau.server.broker import Broker
from moldau.server.metrics.collectors.clients import ConnectionRates, collect_connections, collect_security
from moldau.server.metrics.collectors.cluster import ClusterCollector, ElectionCounter, collect_quorum
from moldau.server.metrics.collectors.groups import GroupCollector, collect_transactions
from moldau.server.metrics.collectors.process import collect_process
from moldau.server.metrics.collectors.remote import collect_remote
from moldau.server.metrics.collectors.replicas import collect_fetch_sessions, collect_logs, collect_replicas
from moldau.server.metrics.collectors.requests import collect_requests
from moldau.server.metrics.collectors.storage import FetcherCollector, FlushCollector
from moldau.server.metrics.collectors.telemetry import collect_telemetry
from moldau.server.metrics.collectors.traffic import busiest, collect_traffic
from moldau.server.metrics.health import Health
from moldau.server.metrics.loop import LoopSampler, MeanSampler, RateSampler
from moldau.server.metrics.requests import RequestMetrics
from moldau.server.metrics.slices import ScrapeSlice
from moldau.server.metrics.telemetry import ClientTelemetry
from moldau.server.services import NodeServices

if TYPE_CHECKING:
    from moldau.server.metrics.forwarding import OtlpForwarder
    from moldau.server.node import Node

_STARTING: Final = 1
_RECOVERING: Final = 2
_RUNNING: Final = 3
_SHUTTING_DOWN: Final = 7


class NodeCollector:
    def __init__(self, node: Node, measured: RequestMetrics, health: Health, clock: Clock) -> None:
        self.sampler = LoopSampler(node.loop_lag, clock, measured.fold, self._sample)
        #: Time of the event loop that the previous scrape took.
        self.scrape_seconds = 0.0
        self._node = node
        self._requests = measured
        self._health = health
        self._clock = clock
        self._limits = node.limits, node.controller_limits
        self._metadata_rate = RateSampler(clock.monotonic)
        self._commit_latency = MeanSampler()
        self._cluster = ClusterCollector()
        self._connections = ConnectionRates(
            node.logins, self._limits, lambda: node.config.listeners, clock.monotonic
        )
        self._fetchers = FetcherCollector(clock.monotonic)
        self._flushes = FlushCollector()
        self._elections: ElectionCounter | None = None
        self._groups: GroupCollector | None = None

    def wired(self, services: NodeServices, broker: Broker | None) -> None:
        """Follow the parts of the node, which exist now."""
        self._elections = ElectionCounter(services.quorum, self._clock.monotonic)
        if broker is not None:
            self._groups = GroupCollector(
                broker.coordinators, broker.replicas, services.metadata, self._clock
            )
            broker.telemetry = ClientTelemetry(
                services.metadata,
                services.settings,
                services.pool,
                services.randomness,
                self._clock,
                _forwarder(services),
            )

    def rotate(self) -> None:
        """Begin a new minute of the quantiles."""
        self.sampler.lag.rotate()
        self._flushes.rotate()
        if self._elections is not None:
            self._elections.times.rotate()

    async def collect(self, scrape: Scrape, turn: ScrapeSlice) -> None:
        node = self._node
        broker = node.broker_role
        collect_process(scrape, self.sampler, node.id)
        idle = self.sampler.idle_ratio
        scrape.add(requests.HANDLER_IDLE, idle)
        for family in (requests.NETWORK_IDLE, *requests.PROCESSOR_IDLE):
            scrape.add(family, idle, *(["0"] if family.labels else []))
        for family in raft.POLL_IDLE:
            scrape.add(family, idle)
        scrape.add(process.SCRAPE_SECONDS, self.scrape_seconds)
        traffic = None if broker is None else broker.replicas.traffic
        await collect_requests(scrape, turn, self._requests, traffic)
        collect_connections(scrape, self._limits, (endpoint.name for endpoint in node.config.listeners))
        self._connections.collect(scrape)
        scrape.add(controller.BROKER_STATE, self._broker_state())
        scrape.add(controller.READY, int(not self._health.reasons_not_ready()))
        if node.is_wired:
            await self._collect_metadata(scrape, turn, node.services)
        if broker is not None:
            await self._collect_broker(scrape, turn, broker)

    async def _collect_metadata(self, scrape: Scrape, turn: ScrapeSlice, services: NodeServices) -> None:
        now_ms = round(self._clock.monotonic() * 1000)
        await collect_security(scrape, turn, services.authorizer, services.quotas, now_ms)
        if self._elections is not None:
            await self._cluster.collect(scrape, turn, services.quorum, self._elections)
        if services.quorum.is_started:
            collect_quorum(scrape, services.quorum, self._metadata_rate, self._commit_latency)
        scrape.add(controller.TIMED_OUT_HEARTBEATS, services.local_controller.timed_out_heartbeats)
        applied = services.metadata.image.offset
        scrape.add(controller.LAST_APPLIED, applied)
        scrape.add(controller.BROKER_APPLIED, applied)
        scrape.add(controller.BROKER_APPLY_LAG, round(services.metadata.applying_seconds * 1000))

    async def _collect_broker(self, scrape: Scrape, turn: ScrapeSlice, broker: Broker) -> None:
        config, traffic = self._node.config, broker.replicas.traffic
        max_topics, max_partitions = (
            config.integer("metrics.max.topics"),
            config.integer("metrics.max.partitions"),
        )
        heartbeat_at = broker.lifecycle.heartbeat_at
        age = -1.0 if heartbeat_at is None else asyncio.get_running_loop().time() - heartbeat_at
        scrape.add(controller.HEARTBEAT_AGE, age)
        topics = [topic for topic, _ in busiest(traffic, max_topics)]
        await collect_traffic(scrape, turn, traffic, max_topics)
        shown = await collect_replicas(scrape, turn, broker.replicas, topics, max_partitions)
        self._collect_topics(scrape, broker, topics)
        await self._fetchers.collect(scrape, turn, broker.replicas.fetchers, shown)
        collect_logs(scrape, broker.logs)
        self._flushes.collect(scrape, broker.logs.open_files.flushes)
        if broker.tiered is not None:
            await collect_remote(scrape, turn, broker.tiered, topics)
        collect_fetch_sessions(scrape, broker.fetch_sessions)
        await turn.pause()
        if self._groups is not None:
            await self._groups.collect(scrape, turn, max_partitions)
        await collect_transactions(scrape, turn, broker.coordinators)
        if broker.telemetry is not None:
            await collect_telemetry(scrape, turn, broker.telemetry)

    def _collect_topics(self, scrape: Scrape, broker: Broker, topics: list[str]) -> None:
        images, node_id = broker.services.metadata.image.topics.by_name, broker.services.id
        for name in topics:
            topic = images.get(name)
            first = None if topic is None else topic.partitions.get(0)
            if topic is not None and first is not None and first.leader == node_id:
                scrape.add(exporter.TOPIC_PARTITIONS, len(topic.partitions), name)

    def _broker_state(self) -> int:
        node = self._node
        if node.stopping:
            return _SHUTTING_DOWN
        if node.started:
            return _RUNNING
        return _RECOVERING if node.broker_role is not None else _STARTING

    def _sample(self) -> None:
        # The lag is not sampled before the node is ready.
        self._requests.fold()
        self._connections.sample()
        if (broker := self._node.broker_role) is not None:
            self._fetchers.sample(broker.replicas.fetchers)
            self._flushes.read(broker.logs.open_files.flushes)
        if self._groups is not None:
            self._groups.sample()
        if self._node.is_wired and self._node.services.quorum.is_started:
            quorum = self._node.services.quorum
            self._metadata_rate.sample(quorum.log_end_offset)
            self._commit_latency.sample(quorum.commit_seconds, quorum.commits)


def _forwarder(services: NodeServices) -> OtlpForwarder | None:
    """Return the forwarder of client telemetry if one is configured; it is imported only then."""
    endpoint = services.settings.config.text("metrics.otlp.endpoint")
    if endpoint is None:
        return None
    from moldau.server.metrics.forwarding import OtlpForwarder

    return OtlpForwarder(endpoint, services.pool, services.tasks)
