"""Samples of a group's offsets: a sum is complete, or missing; large groups are collected in slices."""

from __future__ import annotations

import asyncio
from pathlib import Path

from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AsyncAdminClient, checked
from moldau.client.admin.topic_types import NewTopic
from moldau.metrics.catalog import exporter
from moldau.metrics.catalog.table import FAMILIES
from moldau.metrics.end_offsets import EndOffsets
from moldau.metrics.exposition import Scrape
from moldau.server.metrics.collectors.groups import GroupCollector, OffsetLines
from tests.harness.nodes.node import running_node
from tests.harness.scraping import CountedSlice

PARTITIONS = 100


def test_a_topic_with_an_unknown_lag_has_no_sum() -> None:
    """A sum of the known ones would look like a group that has caught up."""
    scrape = Scrape(FAMILIES)
    lines = OffsetLines(scrape, "g")
    lines.add(TopicPartition("a", 0), 10, 15)
    lines.add(TopicPartition("a", 1), 10, None)
    lines.add(TopicPartition("b", 0), 10, 12)
    lines.add(TopicPartition("b", 1), 10, 9)
    assert lines.add_sums() == 1
    name = exporter.GROUP_LAG_SUM.name
    assert scrape.lines(exporter.GROUP_LAG_SUM) == [f'{name}{{consumergroup="g",topic="b"}} 2']
    assert len(scrape.lines(exporter.GROUP_LAG)) == 3
    assert len(scrape.lines(exporter.GROUP_OFFSET_SUM)) == 2


def test_a_partition_that_does_not_exist_has_no_lag_to_wait_for() -> None:
    scrape = Scrape(FAMILIES)
    lines = OffsetLines(scrape, "g")
    lines.add(TopicPartition("a", 0), 10, 15)
    lines.add(TopicPartition("a", 9), 10, None, exists=False)
    assert lines.add_sums() == 0
    assert len(scrape.lines(exporter.GROUP_LAG_SUM)) == 1


def test_records_that_a_share_group_has_completed_are_no_lag() -> None:
    """They may be anywhere after its start offset."""
    scrape = Scrape(FAMILIES)
    lines = OffsetLines(scrape, "g")
    lines.add(TopicPartition("a", 0), 10, 15, completed=3)
    lines.add_sums()
    values = [line.rpartition(" ")[2] for line in scrape.lines(exporter.GROUP_LAG)]
    assert values == ["2"]
    assert scrape.lines(exporter.GROUP_OFFSET)[0].endswith(" 10")


def test_a_group_with_many_partitions_is_collected_in_slices(tmp_path: Path) -> None:
    async def collected() -> tuple[int, int]:
        config = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}
        async with running_node(tmp_path, config) as node:
            async with AsyncAdminClient(f"127.0.0.1:{node.ports['PLAINTEXT']}") as admin:
                checked(await admin.create_topics([NewTopic("wide", PARTITIONS, 1)]))
                offsets = {TopicPartition("wide", index): 0 for index in range(PARTITIONS)}
                checked(await admin.alter_group_offsets("g", offsets))
            broker = node.broker_role
            assert broker is not None
            scrape, turn = Scrape(FAMILIES), CountedSlice()
            collector = GroupCollector(
                broker.coordinators, broker.replicas, node.services.metadata, node.services.clock
            )
            await collector.collect(scrape, turn, 10_000)
            return len(scrape.lines(exporter.GROUP_LAG)), turn.pauses

    lags, pauses = asyncio.run(collected())
    assert lags == PARTITIONS
    # Once for each partition while its leader is looked up, and once for its samples.
    assert pauses >= 2 * PARTITIONS


def test_the_age_of_a_lag_is_known_after_two_scrapes() -> None:
    scrape, ends, place = Scrape(FAMILIES), EndOffsets(), TopicPartition("a", 0)
    lines = OffsetLines(scrape, "g")
    ends.add(1000, 10)
    lines.add_seconds(place, 4, 10, ends, 1000)
    assert scrape.lines(exporter.GROUP_LAG_SECONDS) == []
    lines.add_seconds(place, 10, 10, ends, 1000)
    ends.add(11_000, 20)
    # The record at offset 14 was appended when half of the ten seconds had passed.
    lines.add_seconds(place, 14, 20, ends, 11_000)
    # This one is older than the first scrape.
    lines.add_seconds(place, 4, 20, ends, 11_000)
    values = [line.rpartition(" ")[2] for line in scrape.lines(exporter.GROUP_LAG_SECONDS)]
    assert values == ["0.0", "5.0", "10.0"]
    millis = [line.rpartition(" ")[2] for line in scrape.lines(exporter.GROUP_LAG_MILLIS)]
    assert millis == ["0", "5000", "10000"]
