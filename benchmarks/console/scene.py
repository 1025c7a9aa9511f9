"""The cluster that is browsed: three nodes, 2,000 partitions, 500 groups, and 10 million records."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from confluent_kafka import Producer

from benchmarks.clients import Librdkafka
from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AsyncAdminClient, checked
from moldau.client.admin.topic_types import NewTopic
from moldau.testing import Cluster

LARGE = "large"
#: A record at the end of the large topic, for the filters to find.
NEEDLE = "the last record"
_LARGE_PARTITIONS = 10
_PARTITIONS = 10
_RECORD_BYTES = 100
_COMMITS_IN_FLIGHT = 8
_TOPICS_PER_REQUEST = 50


@dataclass(frozen=True, slots=True)
class Scale:
    partitions: int = 2_000
    groups: int = 500
    records: int = 10_000_000


async def prepare(cluster: Cluster, scale: Scale) -> None:
    """Create topics and groups, and write the records."""
    topics = [
        NewTopic(f"topic-{number}", _PARTITIONS, 3)
        for number in range((scale.partitions - _LARGE_PARTITIONS) // _PARTITIONS)
    ]
    async with AsyncAdminClient(cluster.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic(LARGE, _LARGE_PARTITIONS, 1)])
        for begin in range(0, len(topics), _TOPICS_PER_REQUEST):
            await admin.create_topics(topics[begin : begin + _TOPICS_PER_REQUEST])
        await _wait_for_leaders(admin, len(topics) + 1)
        in_flight = asyncio.Semaphore(_COMMITS_IN_FLIGHT)

        async def commit(group: int) -> None:
            async with in_flight:
                at = [TopicPartition(topics[group % len(topics)].name, each) for each in range(_PARTITIONS)]
                checked(await admin.alter_group_offsets(f"group-{group}", dict.fromkeys(at, 0)))

        await asyncio.gather(*(commit(group) for group in range(scale.groups)))
    _write(cluster.bootstrap_servers, scale.records)


async def _wait_for_leaders(admin: AsyncAdminClient, count: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        metadata = await admin.cluster.metadata(None)
        led = [each for each in metadata.topics if all(one.leader_id >= 0 for one in each.partitions)]
        if len(led) >= count:
            return
        await asyncio.sleep(0.2)
    raise SystemExit("The partitions have no leaders after two minutes.")


def _write(bootstrap: str, records: int) -> None:
    """Write the records with librdkafka in C, and one that a filter finds at the end of each partition."""
    load = Librdkafka()
    load.run("produce", bootstrap, LARGE, records, _RECORD_BYTES, ("acks=1",), partitions=_LARGE_PARTITIONS)
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition in range(_LARGE_PARTITIONS):
        producer.produce(LARGE, NEEDLE, str(partition), partition)
    if producer.flush(30):
        raise SystemExit("The last records were not written.")
