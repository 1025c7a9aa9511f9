"""Tiered storage: traffic with the remote store, and how far copies and deletions are behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from moldau.metrics.catalog import remote
from moldau.metrics.exposition import Scrape
from moldau.metrics.family import Family
from moldau.server.metrics.slices import ScrapeSlice

if TYPE_CHECKING:
    from moldau.server.tiered.tiered_storage import TieredStorage

#: Families with the attribute of `RemoteTraffic`, and those with the attribute of `TieredPartition`.
_TRAFFIC: Final[tuple[tuple[Family, str], ...]] = (
    (remote.COPY_BYTES, "copy_bytes"),
    (remote.COPY_REQUESTS, "copy_requests"),
    (remote.COPY_ERRORS, "copy_errors"),
    (remote.FETCH_BYTES, "fetch_bytes"),
    (remote.FETCH_REQUESTS, "fetch_requests"),
    (remote.FETCH_ERRORS, "fetch_errors"),
    (remote.DELETE_REQUESTS, "delete_requests"),
    (remote.DELETE_ERRORS, "delete_errors"),
)
_BEHIND: Final[tuple[tuple[Family, str], ...]] = (
    (remote.COPY_LAG_BYTES, "copy_lag_bytes"),
    (remote.COPY_LAG_SEGMENTS, "copy_lag_segments"),
    (remote.DELETE_LAG_BYTES, "delete_lag_bytes"),
    (remote.DELETE_LAG_SEGMENTS, "delete_lag_segments"),
    (remote.LOG_SIZE_BYTES, "log_size_bytes"),
    (remote.METADATA_COUNT, "metadata_count"),
)


async def collect_remote(
    scrape: Scrape, turn: ScrapeSlice, tiered: TieredStorage, topics: Iterable[str]
) -> None:
    """Collect the totals, and the samples of these topics."""
    shown = frozenset(topics)
    total = tiered.store.traffic.total()
    for family, attribute in _TRAFFIC:
        scrape.add(family, getattr(total, attribute))
    for topic, traffic in tiered.store.traffic:
        if topic in shown:
            for family, attribute in _TRAFFIC:
                scrape.add(family, getattr(traffic, attribute), topic)
        await turn.pause()
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(_BEHIND))
    for each in [each for each in tiered.partitions if each.is_led]:
        of_topic = sums[each.id.topic]
        for number, (_, attribute) in enumerate(_BEHIND):
            of_topic[number] += getattr(each, attribute)
        await turn.pause()
    for number, (family, _) in enumerate(_BEHIND):
        scrape.add(family, sum(of_topic[number] for of_topic in sums.values()))
        for topic in sorted(shown & sums.keys()):
            scrape.add(family, sums[topic][number], topic)
        await turn.pause()
    scrape.add(remote.READER_QUEUE, tiered.store.pending_reads)
    scrape.add(remote.INDEX_CACHE_BYTES, tiered.store.indexes.total_bytes)
    scrape.add(remote.COPY_THROTTLED, tiered.copy_task.quota.throttled_ms / 1000)
