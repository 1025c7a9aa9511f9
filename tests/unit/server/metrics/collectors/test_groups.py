"""Samples of a group's offsets: a sum is complete, or missing."""

from __future__ import annotations

from moldau.base.ids import TopicPartition
from moldau.metrics.catalog import exporter
from moldau.metrics.catalog.table import FAMILIES
from moldau.metrics.exposition import Scrape
from moldau.server.metrics.collectors.groups import OffsetLines


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
