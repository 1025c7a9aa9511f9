"""The answers that clients received under faults: the facts that the checker holds the cluster to.

Every record says who wrote it and which of that writer's records on the partition it is (`writer/5`); a
record of a transaction also names it (`writer/t7/5`). Writers and readers are threads, so everything here
takes a lock.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum, auto


class Outcome(Enum):
    """How a transaction ended, as far as its producer knows."""

    COMMITTED = auto()
    ABORTED = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Acknowledged:
    partition: int
    #: None: the client does not say (librdkafka, for a record the broker had already).
    offset: int | None
    value: bytes


@dataclass(slots=True)
class Transaction:
    values: list[tuple[int, bytes]] = field(default_factory=list)
    outcome: Outcome = Outcome.UNKNOWN


class History:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin = time.monotonic()
        self.acknowledged: dict[str, list[Acknowledged]] = defaultdict(list)
        self.transactions: dict[str, Transaction] = {}
        #: Of every reader, in the order in which they came: partition, offset, value.
        self.seen: dict[str, list[tuple[int, int, bytes]]] = defaultdict(list)
        #: The largest offset whose commit was confirmed, by group and partition.
        self.commits: dict[tuple[str, int], int] = {}
        self.violations: list[str] = []
        self.timeline: list[str] = []

    def acknowledge(self, writer: str, partition: int, offset: int | None, value: bytes) -> None:
        with self._lock:
            self.acknowledged[writer].append(Acknowledged(partition, offset, value))

    def see(self, reader: str, partition: int, offset: int, value: bytes) -> None:
        with self._lock:
            self.seen[reader].append((partition, offset, value))

    def committed(self, group: str, partition: int, offset: int) -> None:
        with self._lock:
            key = (group, partition)
            self.commits[key] = max(offset, self.commits.get(key, 0))

    def least_commit(self, group: str, partition: int) -> int:
        with self._lock:
            return self.commits.get((group, partition), 0)

    def violation(self, sentence: str) -> None:
        with self._lock:
            self.violations.append(f"{self._now()} {sentence}")

    def note(self, sentence: str) -> None:
        with self._lock:
            self.timeline.append(f"{self._now()} {sentence}")

    def count(self) -> int:
        with self._lock:
            return sum(map(len, self.acknowledged.values()))

    def _now(self) -> str:
        return f"{time.monotonic() - self._begin:7.2f}s"
