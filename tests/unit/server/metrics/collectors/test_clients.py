"""Rates of connections and logins, and figures of quotas."""

from __future__ import annotations

import asyncio

import pytest

from moldau.base.clock import ManualClock
from moldau.config.listeners import Endpoint
from moldau.metrics.catalog import requests, security
from moldau.metrics.catalog.table import FAMILIES
from moldau.metrics.exposition import Scrape
from moldau.metrics.family import Family
from moldau.network.limits import ConnectionLimits
from moldau.quotas.client_quotas import ClientQuotas
from moldau.server.authentication.login_counts import LoginCounts, LoginOutcome
from moldau.server.metrics.collectors.clients import ConnectionRates, collect_security
from tests.harness.scraping import CountedSlice

LISTENER = Endpoint("CLIENTS", "SASL_SSL", "localhost", 9092)
#: Between two samples of the loop.
TICK_S = 5
PRODUCE = security.QUOTA_FIGURES["producer_byte_rate"]


class Node:
    """Ten connections and five logins per second."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.limits = ConnectionLimits()
        self.logins = LoginCounts()
        self.rates = ConnectionRates(self.logins, (self.limits,), lambda: (LISTENER,), self.clock.monotonic)
        self.rates.sample()

    def run(self, seconds: int) -> None:
        for second in range(seconds):
            self.limits.served[LISTENER.name] += 10
            for _ in range(5):
                self.logins.add(LISTENER.name, LoginOutcome.SUCCESSFUL)
            self.clock.advance(1000)
            if second % TICK_S == TICK_S - 1:
                self.rates.sample()

    def scraped(self, family: Family) -> float:
        scrape = Scrape(FAMILIES)
        self.rates.collect(scrape)
        (line,) = scrape.lines(family)
        return float(line.rpartition(" ")[2])


@pytest.mark.parametrize("interval", [5, 15, 300])
def test_rates_do_not_depend_on_the_scrape_interval(interval: int) -> None:
    node = Node()
    for _ in range(3):
        node.run(interval)
        assert node.scraped(requests.CONNECTION_CREATION_RATE) == pytest.approx(10)
        assert node.scraped(requests.CONNECTION_CLOSE_RATE) == pytest.approx(10)
        login_rate = requests.LOGIN_RATES[requests.SUCCESSFUL_LOGINS]
        assert node.scraped(login_rate) == pytest.approx(5)


def test_a_rate_falls_to_zero_within_a_minute() -> None:
    node = Node()
    node.run(120)
    for _ in range(13):
        node.clock.advance(TICK_S * 1000)
        node.rates.sample()
    assert node.scraped(requests.CONNECTION_CREATION_RATE) == 0
    assert node.scraped(requests.SUCCESSFUL_LOGINS) == 600


def test_the_clients_that_use_most_of_their_quota_are_collected_in_slices() -> None:
    quotas, scrape, turn = ClientQuotas(), Scrape(FAMILIES), CountedSlice()
    quotas.apply({(("client-id", None),): {"producer_byte_rate": 1000.0}})
    for number in range(300):
        quotas.produce.record("", f"client-{number:03}", 10.0 * number, now_ms=1000)
    asyncio.run(collect_security(scrape, turn, None, quotas, 1000))
    names = [line.split('client_id="')[1][:10] for line in scrape.lines(PRODUCE.rate_by_name)]
    assert names == [f"client-{number:03}" for number in range(299, 99, -1)]
    by_resource = scrape.lines(security.BYTE_RATE)
    assert len(by_resource) == len(names)
    assert by_resource[0].startswith(
        'kafka_server_quota_byte_rate{resource="Produce",user="",clientId="client-299"} '
    )
    assert turn.pauses >= 300
