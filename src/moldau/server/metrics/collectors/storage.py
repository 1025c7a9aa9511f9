"""Replica fetchers, and the flushes of logs."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final
from weakref import WeakKeyDictionary

from moldau.base.ids import TopicPartition
from moldau.metrics.catalog import replicas
from moldau.metrics.exposition import Scrape, escaped
from moldau.metrics.latencies import QUANTILES, Latencies, quantiles_ms
from moldau.replication.fetcher import Fetcher
from moldau.replication.fetchers import Fetchers
from moldau.server.metrics.loop import RateSampler
from moldau.server.metrics.slices import ScrapeSlice
from moldau.storage.disk.open_files import FlushTimes

_MANAGER: Final = "Replica"


class FetcherCollector:
    """The lag of followed partitions, and the rates of the fetchers."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._rates: WeakKeyDictionary[Fetcher, RateSampler] = WeakKeyDictionary()

    def sample(self, fetchers: Fetchers) -> None:
        for fetcher in fetchers:
            self._rate(fetcher).sample(fetcher.requests)

    async def collect(
        self,
        scrape: Scrape,
        turn: ScrapeSlice,
        fetchers: Fetchers,
        shown: AbstractSet[TopicPartition],
    ) -> None:
        """Add the rates, and the lag of the partitions in `shown`."""
        append, name = scrape.lines(replicas.FETCHER_LAG).append, replicas.FETCHER_LAG.name
        rates = []
        for fetcher in fetchers:
            rates.append(self._rate(fetcher).per_second(fetcher.requests))
            for followed in fetcher:
                topic, index = place = followed.partition.topic_partition
                if followed.lag is not None and place in shown:
                    labels = f'clientId="{fetcher.name}",topic="{escaped(topic)}",partition="{index}"'
                    append(f"{name}{{{labels}}} {followed.lag}")
                await turn.pause()
        scrape.add(replicas.MIN_FETCH_RATE, min(rates, default=0.0), _MANAGER)
        scrape.add(replicas.DEAD_FETCHERS, 0, _MANAGER)

    def _rate(self, fetcher: Fetcher) -> RateSampler:
        return self._rates.setdefault(fetcher, RateSampler(self._now))


class FlushCollector:
    def __init__(self) -> None:
        self._times = Latencies()

    def read(self, flushes: FlushTimes) -> None:
        """Take over the flushes since the last call."""
        recent = flushes.recent
        while recent:
            self._times.record(round(recent.popleft() * 1e6))

    def rotate(self) -> None:
        self._times.rotate()

    def collect(self, scrape: Scrape, flushes: FlushTimes) -> None:
        self.read(flushes)
        times = self._times
        quantiles = zip(QUANTILES, quantiles_ms(times.recent()), strict=True)
        scrape.add_summary(replicas.FLUSH_TIME, quantiles, times.sum_us / 1000, times.count)
