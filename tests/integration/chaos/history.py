"""The responses that clients received under faults, for the checker.

Every value has its writer and its number among that writer's records of the partition (`writer/5`); a
record of a transaction also names the transaction (`writer/t7/5`). Writers and readers
are threads, so every method takes a lock.
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
    #: None if the client does not report it (librdkafka, for a duplicate).
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
        #: Partition, offset and value by reader, in the order of receipt.
        self.seen: dict[str, list[tuple[int, int, bytes]]] = defaultdict(list)
        #: The largest acknowledged commit by group and partition.
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
