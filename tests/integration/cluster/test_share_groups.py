"""Share groups of three brokers: every record is acknowledged in the end, whichever node is killed."""

from __future__ import annotations

import asyncio

import pytest

from moldau.client.admin.share_groups import share_group_offsets
from moldau.client.share.consumer import ShareConsumer
from moldau.client.wire.cluster import Cluster as ClientCluster
from moldau.client.wire.settings import ClientSettings
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.testing import Cluster
from tests.harness.clients.feed import PARTITIONS, Feed, create
from tests.harness.clients.share import ACCEPT
from tests.harness.nodes.leaders import GROUP, coordinator_of, leaders_of
from tests.harness.wire.wire import Wire

BATCH = 300
GROUP_RESOURCE = 32
CONFIG = {
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.assignment.interval.ms": "50",
    "group.share.record.lock.duration.ms": "3000",
    "group.share.min.record.lock.duration.ms": "1000",
}


def begin_at_the_beginning(cluster: Cluster, group: str) -> None:
    earliest = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=[earliest])
    answer = Wire(f"127.0.0.1:{cluster.brokers[0].port}").call(
        IncrementalAlterConfigsRequest(resources=[resource]), 1
    )
    assert answer.responses[0].error_code == 0


class Reader:
    """A member that accepts every record."""

    def __init__(self, consumer: ShareConsumer) -> None:
        self._consumer = consumer
        self.seen: set[int] = set()

    async def read(self, wanted: int) -> None:
        async with asyncio.timeout(60):
            while len(self.seen) < wanted:
                for record in await self._consumer.poll(0.2):
                    self.seen.add(int(record.record.value or b""))
                    self._consumer.acknowledge(record, ACCEPT)


async def lags(settings: ClientSettings, group: str) -> list[int | None]:
    client = ClientCluster(settings)
    try:
        return [each.lag for each in (await share_group_offsets(client, group)).values()]
    finally:
        client.close()


@pytest.mark.parametrize("victim", ["the group's coordinator", "a leader"])
def test_a_share_group_continues_when_brokers_are_killed(cluster: Cluster, topic: str, victim: str) -> None:
    group = f"group-of-{topic}"
    create(cluster, topic)
    begin_at_the_beginning(cluster, group)
    settings = ClientSettings.from_properties({"bootstrap.servers": cluster.bootstrap_servers})

    def kill_one() -> None:
        coordinator = coordinator_of(cluster, group, GROUP)
        others = set(leaders_of(cluster, topic).values()) - {coordinator}
        cluster.kill(coordinator if victim == "the group's coordinator" else min(others))

    async def main() -> None:
        feed = Feed(cluster, topic)
        async with ShareConsumer(settings, group, [topic]) as consumer:
            reader = Reader(consumer)
            for step in range(5):
                feed.more(BATCH)
                await reader.read(feed.sent)
                if step in (1, 3):
                    kill_one()
                elif step == 2:
                    cluster.start()
            # The last acknowledgements are sent with the next polls; locks of a killed broker expire.
            async with asyncio.timeout(60):
                while await lags(settings, group) != [0] * PARTITIONS:
                    for record in await consumer.poll(0.3):
                        consumer.acknowledge(record, ACCEPT)

    asyncio.run(main())
