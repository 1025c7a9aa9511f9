"""Samples of requests."""

from __future__ import annotations

import asyncio
import time

from moldau.base.errors import ErrorCode
from moldau.metrics.catalog import requests
from moldau.metrics.catalog.table import FAMILIES
from moldau.metrics.exposition import Scrape
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.headers import RequestHeader
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.server.metrics.collectors.requests import collect_requests
from moldau.server.metrics.requests import RequestMetrics
from moldau.server.metrics.slices import ScrapeSlice


def test_requests_and_errors_are_of_the_same_moment() -> None:
    metrics = RequestMetrics(time.monotonic)
    header = RequestHeader(ApiKey.HEARTBEAT, 4, 1, "client")
    for code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS):
        metrics.answered(header, HeartbeatRequest(), HeartbeatResponse(error_code=code), time.monotonic(), 40)
    scrape = Scrape(FAMILIES)
    asyncio.run(collect_requests(scrape, ScrapeSlice(), metrics, None))
    name = requests.ERRORS.name
    assert f'{name}{{request="Heartbeat",error="NONE"}} 1' in scrape.lines(requests.ERRORS)
    assert f'{name}{{request="Heartbeat",error="REBALANCE_IN_PROGRESS"}} 2' in scrape.lines(requests.ERRORS)
