"""The state of a cluster at one time, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from moldau.base.ids import Uuid
from moldau.client.admin.group_types import GroupListing
from moldau.client.admin.quorum import QuorumDescription

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class LogDirectory:
    path: str
    total_bytes: int
    usable_bytes: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Broker:
    id: int
    host: str
    port: int
    rack: str | None
    online: bool
    directories: tuple[LogDirectory, ...] = ()
    #: Bytes of all replicas; None if the broker did not answer.
    size: int | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}" if self.host else ""


@dataclass(frozen=True, slots=True)
class Partition:
    """Offsets and size are None if the leader did not answer; `size` is that of the leader's replica."""

    index: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start: int | None = None
    end: int | None = None
    size: int | None = None

    @property
    def under_replicated(self) -> bool:
        return len(self.in_sync) < len(self.replicas)


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    id: Uuid
    internal: bool
    partitions: tuple[Partition, ...]
    policy: str | None = None

    @property
    def replication(self) -> int:
        return max((len(each.replicas) for each in self.partitions), default=0)

    @property
    def records(self) -> int | None:
        """Offsets between start and end of all partitions; None if none is known."""
        known = [
            each.end - each.start
            for each in self.partitions
            if each.start is not None and each.end is not None
        ]
        return sum(known) if known else None

    @property
    def size(self) -> int | None:
        known = [each.size for each in self.partitions if each.size is not None]
        return sum(known) if known else None


@dataclass(frozen=True)
class Snapshot:
    """`error` is the reason if the last refresh failed; the rest is then the state before."""

    version: int = 0
    time_ms: int = 0
    cluster_id: str | None = None
    controller_id: int = -1
    brokers: tuple[Broker, ...] = ()
    topics: Mapping[str, Topic] = field(default_factory=dict)
    groups: Mapping[str, GroupListing] = field(default_factory=dict)
    quorum: QuorumDescription | None = None
    error: str | None = None

    @cached_property
    def under_replicated(self) -> int:
        return sum(each.under_replicated for topic in self.topics.values() for each in topic.partitions)

    @cached_property
    def offline(self) -> int:
        """The number of partitions without leader."""
        return sum(each.leader == NO_LEADER for topic in self.topics.values() for each in topic.partitions)

    @cached_property
    def partitions(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics.values())

    @property
    def offline_brokers(self) -> int:
        return sum(not each.online for each in self.brokers)

    @property
    def health(self) -> tuple[str, str]:
        """One word and the reason for it."""
        if self.error is not None:
            return "Unreachable", self.error
        if self.offline:
            return "Critical", f"{self.offline} partitions have no leader."
        if self.offline_brokers:
            return "Degraded", f"{self.offline_brokers} of {len(self.brokers)} brokers are offline."
        if self.under_replicated:
            return "Degraded", f"{self.under_replicated} partitions are under-replicated."
        return "Healthy", "All brokers are online, and all replicas are in sync."
