"""Requests by type, from the dispatcher's recorders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from moldau.base.errors import ErrorCode
from moldau.metrics.catalog import replicas, requests
from moldau.metrics.exposition import Scrape
from moldau.metrics.latencies import QUANTILES, merged, quantiles_ms
from moldau.replication.traffic import Traffic
from moldau.server.metrics.requests import RequestMetrics, RequestRecorder
from moldau.server.metrics.slices import ScrapeSlice

_ZEROS: Final = [(quantile, 0.0) for quantile in QUANTILES]
#: Operations that wait in Kafka's purgatories, and the requests of which they are part.
_DELAYED: Final = {
    "Produce": ("Produce",),
    "Fetch": ("FetchConsumer", "FetchFollower"),
    "ShareFetch": ("ShareFetch",),
    "DeleteRecords": ("DeleteRecords",),
    "Rebalance": ("JoinGroup", "SyncGroup"),
}


async def collect_requests(
    scrape: Scrape, turn: ScrapeSlice, metrics: RequestMetrics, traffic: Traffic | None
) -> None:
    of_partitions: Mapping[str, Mapping[int, int]] = {}
    if traffic is not None:
        of_partitions = {"Produce": traffic.produce_failures, "Fetch": traffic.fetch_failures}
    for recorder in metrics:
        # Errors are counted at once and durations when they are folded: without this, requests of the last
        # pause would be failures that are not requests, and the number of requests without an error decrease.
        metrics.fold()
        _collect(scrape, recorder.name, (recorder,), of_partitions.get(recorder.name, {}))
        await turn.pause()
    metrics.fold()
    _collect(
        scrape, "Fetch", (metrics.fetch_consumer, metrics.fetch_follower), of_partitions.get("Fetch", {})
    )
    waiting = {recorder.name: recorder.waiting for recorder in metrics}
    for operation, names in _DELAYED.items():
        scrape.add(replicas.PURGATORY, sum(waiting.get(name, 0) for name in names), operation)


def _collect(
    scrape: Scrape, name: str, parts: Sequence[RequestRecorder], of_partitions: Mapping[int, int]
) -> None:
    """Add the samples of a request type; Fetch consists of FetchConsumer and FetchFollower.

    `of_partitions` are errors of partitions, which count with the same errors of whole requests.
    """
    versions, errors = Counter[int](), Counter[int]()
    for part in parts:
        versions.update(part.versions)
        errors.update(part.errors)
    count = sum(part.count for part in parts)
    for version, answered in sorted(versions.items()):
        scrape.add(requests.REQUESTS, answered, name, version)
    scrape.add(requests.ERRORS, count - errors.total(), name, "NONE")
    errors.update(of_partitions)
    for code, failed in sorted(errors.items()):
        scrape.add(requests.ERRORS, failed, name, ErrorCode.of(code).name)
    for family, counts, sum_us in (
        (requests.TOTAL_TIME, (part.total_counts() for part in parts), sum(part.total_us for part in parts)),
        (requests.LOCAL_TIME, (part.local_counts() for part in parts), sum(part.local_us for part in parts)),
        (
            requests.REMOTE_TIME,
            (part.remote_counts() for part in parts),
            sum(part.remote.sum_us for part in parts),
        ),
        (
            requests.THROTTLE_TIME,
            (part.throttle_counts() for part in parts),
            sum(part.throttle.sum_us for part in parts),
        ),
    ):
        quantiles = zip(QUANTILES, quantiles_ms(merged(counts)), strict=True)
        scrape.add_summary(family, quantiles, sum_us / 1000, count, name)
    sizes = merged(part.bytes.recent() for part in parts)
    # Sizes have the buckets of microseconds, of which `quantiles_ms` returns thousandths.
    bytes_of = zip(QUANTILES, (1000 * each for each in quantiles_ms(sizes)), strict=True)
    total_bytes = sum(part.bytes.sum_us for part in parts)
    scrape.add_summary(requests.REQUEST_BYTES, bytes_of, total_bytes, sum(p.bytes.count for p in parts), name)
    for family in requests.ZERO_PHASES:
        scrape.add_summary(family, _ZEROS, 0, count, name)
