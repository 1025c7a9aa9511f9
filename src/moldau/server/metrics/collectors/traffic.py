"""Traffic of topics, from the counters of the replicas."""

from __future__ import annotations

from typing import Final

from moldau.base.errors import ErrorCode
from moldau.metrics.catalog import process, traffic
from moldau.metrics.exposition import Scrape, escaped
from moldau.metrics.family import Family
from moldau.replication.traffic import Traffic
from moldau.server.metrics.slices import ScrapeSlice

#: Families with a sample for each topic, and the attribute of `TopicTraffic`.
_BY_TOPIC: Final[tuple[tuple[Family, str], ...]] = (
    (traffic.MESSAGES_IN, "messages_in"),
    (traffic.BYTES_IN, "bytes_in"),
    (traffic.BYTES_OUT, "bytes_out"),
    (traffic.BYTES_REJECTED, "bytes_rejected"),
    (traffic.PRODUCE_REQUESTS, "produce_requests"),
    (traffic.FETCH_REQUESTS, "fetch_requests"),
    (traffic.FAILED_PRODUCE_REQUESTS, "failed_produce_requests"),
    (traffic.FAILED_FETCH_REQUESTS, "failed_fetch_requests"),
)


async def collect_traffic(scrape: Scrape, turn: ScrapeSlice, counted: Traffic, max_topics: int) -> None:
    total = counted.total()
    for family, attribute in _BY_TOPIC:
        scrape.add(family, getattr(total, attribute))
    scrape.add(traffic.REPLICATION_BYTES_IN, total.replication_bytes_in)
    scrape.add(traffic.REPLICATION_BYTES_OUT, total.replication_bytes_out)
    scrape.add(traffic.REASSIGNMENT_BYTES_IN, total.reassignment_bytes_in)
    scrape.add(traffic.REASSIGNMENT_BYTES_OUT, total.reassignment_bytes_out)
    scrape.add(traffic.NO_KEY_RECORDS, total.keyless_records)
    sent = total.bytes_out + total.replication_bytes_out
    scrape.add(traffic.FETCHED_BYTES, total.disk_bytes, "disk")
    scrape.add(traffic.FETCHED_BYTES, max(0, sent - total.disk_bytes), "cache")
    failures = counted.produce_failures
    scrape.add(traffic.INVALID_CRC_RECORDS, failures.get(ErrorCode.CORRUPT_MESSAGE, 0))
    scrape.add(traffic.INVALID_SEQUENCE_RECORDS, failures.get(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0))
    await turn.pause()
    lines = [(scrape.lines(family), family.name, attribute) for family, attribute in _BY_TOPIC]
    for topic, found in busiest(counted, max_topics):
        labels = f'{{topic="{escaped(topic)}"}}'
        for of_family, name, attribute in lines:
            of_family.append(f"{name}{labels} {getattr(found, attribute)}")
        await turn.pause()
    scrape.add(process.OMITTED, max(0, len(counted) - max_topics), "topics")


def busiest(counted: Traffic, max_topics: int) -> list[tuple[str, object]]:
    """Return the topics with the most traffic, at most `max_topics`, by name."""
    topics: list[tuple[str, object]] = list(counted)
    if len(topics) > max_topics:
        ranked = sorted(counted, key=lambda each: (-each[1].bytes, each[0]))
        topics = list(ranked[:max_topics])
    return sorted(topics, key=lambda each: each[0])
