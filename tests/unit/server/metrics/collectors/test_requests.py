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
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.replication.traffic import Traffic
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


def test_errors_of_a_request_and_of_its_partitions_are_one_sample() -> None:
    """Two samples with the same labels make the whole scrape invalid."""
    metrics, traffic = RequestMetrics(time.monotonic), Traffic()
    header = RequestHeader(ApiKey.FETCH, 17, 1, "client")
    code = ErrorCode.UNKNOWN_TOPIC_ID
    metrics.answered(header, FetchRequest(), FetchResponse(error_code=code), time.monotonic(), 40)
    traffic.fetch_failures[code] = 3
    traffic.produce_failures[ErrorCode.NOT_LEADER_OR_FOLLOWER] = 2
    scrape = Scrape(FAMILIES)
    asyncio.run(collect_requests(scrape, ScrapeSlice(), metrics, traffic))
    lines, name = scrape.lines(requests.ERRORS), requests.ERRORS.name
    assert f'{name}{{request="Fetch",error="UNKNOWN_TOPIC_ID"}} 4' in lines
    assert f'{name}{{request="FetchConsumer",error="UNKNOWN_TOPIC_ID"}} 1' in lines
    assert f'{name}{{request="Fetch",error="NONE"}} 0' in lines
    assert f'{name}{{request="Produce",error="NOT_LEADER_OR_FOLLOWER"}} 2' in lines
    labels = [line.rpartition(" ")[0] for line in lines]
    assert len(labels) == len(set(labels))
