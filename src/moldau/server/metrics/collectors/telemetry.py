"""Metrics that clients have pushed, and the state of the receiver."""

from __future__ import annotations

from moldau.metrics.catalog import telemetry
from moldau.metrics.exposition import Scrape
from moldau.server.metrics.slices import ScrapeSlice
from moldau.server.metrics.telemetry import ClientTelemetry


async def collect_telemetry(scrape: Scrape, turn: ScrapeSlice, received: ClientTelemetry) -> None:
    series = received.series
    received.expire()
    scrape.add(telemetry.INSTANCES, len(received.subscriptions))
    scrape.add(telemetry.PUSHES, received.pushes)
    scrape.add(telemetry.MALFORMED, received.malformed)
    scrape.add(telemetry.SERIES, len(series))
    scrape.add(telemetry.DROPPED, series.dropped)
    if received.forwarder is not None:
        scrape.add(telemetry.FORWARDED, received.forwarder.forwarded)
        scrape.add(telemetry.FORWARD_LOST, received.forwarder.lost)
    for _ in series.collect(scrape):
        await turn.pause()
