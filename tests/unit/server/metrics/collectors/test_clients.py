"""Rates of connections and logins."""

from __future__ import annotations

import pytest

from moldau.base.clock import ManualClock
from moldau.config.listeners import Endpoint
from moldau.metrics.catalog import requests
from moldau.metrics.catalog.table import FAMILIES
from moldau.metrics.exposition import Scrape
from moldau.metrics.family import Family
from moldau.network.limits import ConnectionLimits
from moldau.server.authentication.login_counts import LoginCounts, LoginOutcome
from moldau.server.metrics.collectors.clients import ConnectionRates

LISTENER = Endpoint("CLIENTS", "SASL_SSL", "localhost", 9092)
#: Between two samples of the loop.
TICK_S = 5


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
