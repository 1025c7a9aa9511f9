"""Replicas, partitions and logs of this broker.

One pass over all replicas counts and writes the samples of partitions. Lines are formatted here, because a
broker has thousands of partitions and each has many samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from moldau.base.ids import TopicPartition
from moldau.metrics.catalog import exporter, process, replicas
from moldau.metrics.exposition import Scrape, escaped
from moldau.metrics.family import Family
from moldau.replication.partition import Partition
from moldau.replication.replica_manager import ReplicaManager
from moldau.replication.traffic import Traffic
from moldau.server.metrics.slices import ScrapeSlice
from moldau.server.partitions.fetch_sessions import FetchSessionCache
from moldau.storage.log.log import Log
from moldau.storage.manager.manager import LogManager

_FETCHER = "Replica"


class ReplicaCounts:
    """Sums over the replicas of a broker."""

    __slots__ = (
        "at_min_isr",
        "leaders",
        "offline",
        "partitions",
        "producer_ids",
        "reassigning",
        "under_min_isr",
        "under_replicated",
    )

    def __init__(self) -> None:
        self.partitions = 0
        self.leaders = 0
        self.under_replicated = 0
        self.under_min_isr = 0
        self.at_min_isr = 0
        self.offline = 0
        self.reassigning = 0
        self.producer_ids = 0

    def add_to(self, scrape: Scrape) -> None:
        for family, value in (
            (replicas.PARTITIONS, self.partitions),
            (replicas.LEADERS, self.leaders),
            (replicas.UNDER_REPLICATED, self.under_replicated),
            (replicas.UNDER_MIN_ISR, self.under_min_isr),
            (replicas.AT_MIN_ISR, self.at_min_isr),
            (replicas.OFFLINE_REPLICAS, self.offline),
            (replicas.REASSIGNING, self.reassigning),
            (replicas.PRODUCER_IDS, self.producer_ids),
        ):
            scrape.add(family, value)


async def collect_replicas(
    scrape: Scrape, turn: ScrapeSlice, manager: ReplicaManager, topics: Iterable[str], max_partitions: int
) -> frozenset[TopicPartition]:
    """Add the samples of all replicas; return the partitions that have their own.

    These are the partitions of `topics`, at most `max_partitions`, those of the topics with the most traffic.
    """
    counts, lines = ReplicaCounts(), PartitionLines(scrape)
    of_topics: dict[str, list[Partition]] = {topic: [] for topic in topics}
    for partition in list(manager):
        own = of_topics.get(partition.topic_partition.topic)
        if own is None:
            _count(counts, partition, None)
        else:
            own.append(partition)
        await turn.pause()
    candidates = list(chain.from_iterable(of_topics.values()))
    if len(candidates) > max_partitions:
        candidates = _busiest(of_topics, manager.traffic)
    for number, partition in enumerate(candidates):
        _count(counts, partition, lines if number < max_partitions else None)
        await turn.pause()
    shown = frozenset(each.topic_partition for each in candidates[:max_partitions])
    counts.add_to(scrape)
    scrape.add(process.OMITTED, counts.partitions - len(shown), "partitions")
    changes = manager.changes
    scrape.add(replicas.ISR_SHRINKS, changes.isr_shrinks)
    scrape.add(replicas.ISR_EXPANDS, changes.isr_expands)
    scrape.add(replicas.FAILED_ISR_UPDATES, changes.refused)
    lag = 0
    for followed in manager.fetchers.followed():
        lag = max(lag, followed.lag or 0)
        await turn.pause()
    scrape.add(replicas.MAX_LAG, lag, _FETCHER)
    scrape.add(replicas.FAILED_PARTITIONS, manager.fetchers.failed_count, _FETCHER)
    return shown


def _busiest(of_topics: Mapping[str, Sequence[Partition]], traffic: Traffic) -> list[Partition]:
    """Return the partitions in the order of the traffic of their topics."""
    total = {topic: counted.bytes for topic, counted in traffic}
    ranked = sorted(of_topics, key=lambda topic: (-total.get(topic, 0), topic))
    return [partition for topic in ranked for partition in of_topics[topic]]


def _count(counts: ReplicaCounts, partition: Partition, lines: PartitionLines | None) -> None:
    counts.partitions += 1
    log, registration = partition.log, partition.current
    if log is None:
        counts.offline += 1
    else:
        counts.producer_ids += len(log.producer_state.producers)
    labels = "" if lines is None else lines.labels(partition)
    if lines is not None and log is not None:
        lines.add_log(labels, log)
    if not partition.is_leader or registration is None:
        return
    in_sync, wanted = len(registration.isr), len(registration.replicas)
    least = min(log.config.min_insync_replicas, wanted) if log is not None else 1
    counts.leaders += 1
    counts.reassigning += registration.is_reassigning
    counts.under_replicated += in_sync < wanted - len(registration.adding)
    counts.under_min_isr += in_sync < least
    counts.at_min_isr += in_sync == least
    if lines is not None:
        lines.add_leader(labels, partition, in_sync, wanted, least)


class PartitionLines:
    """Appends the samples of partitions to the lines of their families."""

    def __init__(self, scrape: Scrape) -> None:
        def of(family: Family) -> tuple[Callable[[str], None], str]:
            return scrape.lines(family).append, family.name

        self._log_families = [
            of(family)
            for family in (
                replicas.LOG_SIZE,
                replicas.LOG_SEGMENTS,
                replicas.LOG_START_OFFSET,
                replicas.LOG_END_OFFSET,
            )
        ]
        self._leader_families = [
            of(family)
            for family in (
                replicas.UNDER_REPLICATED_PARTITION,
                replicas.UNDER_MIN_ISR_PARTITION,
                replicas.AT_MIN_ISR_PARTITION,
                replicas.IN_SYNC_REPLICAS,
                replicas.REPLICAS,
                replicas.LAST_STABLE_OFFSET_LAG,
                exporter.LEADER,
                exporter.LEADER_IS_PREFERRED,
                exporter.REPLICAS,
                exporter.IN_SYNC_REPLICAS,
                exporter.UNDER_REPLICATED,
                exporter.CURRENT_OFFSET,
                exporter.OLDEST_OFFSET,
            )
        ]

    @staticmethod
    def labels(partition: Partition) -> str:
        topic, index = partition.topic_partition
        return f'{{topic="{escaped(topic)}",partition="{index}"}} '

    def add_log(self, labels: str, log: Log) -> None:
        segments = log.segments
        values = (
            segments.size,
            len(segments.current.items),
            log.offsets.log_start_offset,
            segments.end_offset,
        )
        for (append, name), value in zip(self._log_families, values, strict=True):
            append(f"{name}{labels}{value}")

    def add_leader(self, labels: str, partition: Partition, in_sync: int, wanted: int, least: int) -> None:
        registration, log = partition.registration, partition.log
        high_watermark = oldest = unstable = 0
        if log is not None:
            high_watermark, oldest = log.high_watermark, log.log_start_offset
            unstable = max(0, high_watermark - log.last_stable_offset)
        under_replicated = int(in_sync < wanted - len(registration.adding))
        values = (
            under_replicated,
            int(in_sync < least),
            int(in_sync == least),
            in_sync,
            wanted,
            unstable,
            registration.leader,
            int(registration.leader == registration.preferred_leader),
            wanted,
            in_sync,
            under_replicated,
            high_watermark,
            oldest,
        )
        for (append, name), value in zip(self._leader_families, values, strict=True):
            append(f"{name}{labels}{value}")


def collect_logs(scrape: Scrape, logs: LogManager) -> None:
    offline = 0
    uncleanable = dict.fromkeys((directory.path for directory in logs.directories), 0)
    for topic_partition in logs.cleaner.uncleanable:
        log = logs.table.current.get(topic_partition)
        if log is not None:
            uncleanable[logs.directories.of(log).path] += 1
    for directory in logs.directories:
        offline += directory.offline
        scrape.add(replicas.DIRECTORY_OFFLINE, int(directory.offline), directory.path)
        scrape.add(replicas.UNCLEANABLE, uncleanable[directory.path], directory.path)
    scrape.add(replicas.OFFLINE_DIRECTORIES, offline)
    scrape.add(replicas.MAX_DIRTY_PERCENT, int(100 * logs.cleaner.dirtiest_ratio))
    scrape.add(replicas.SINCE_CLEANER_RUN, round(1000 * logs.cleaner.seconds_since_run))
    scrape.add(process.OPEN_LOG_FILES, len(logs.open_files))


def collect_fetch_sessions(scrape: Scrape, cache: FetchSessionCache) -> None:
    sessions = cache.sessions.values()
    scrape.add(replicas.FETCH_SESSIONS, len(sessions))
    scrape.add(replicas.FETCH_SESSION_PARTITIONS, sum(len(each.partitions) for each in sessions))
    scrape.add(replicas.FETCH_SESSION_EVICTIONS, cache.evictions)
