"""The messages between the node and its cleaner: a job, the groups of segments that are ready, the result.

They are serialized as lines of JSON, because the cleaner usually is a separate process (`process`). The job
contains what the cleaner cannot read by itself: what changes while it works (active producers, aborted
transactions) and the time.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple, Protocol

from moldau.base.ids import TopicPartition
from moldau.storage.log.config import LogConfig
from moldau.storage.segment.txn_index import AbortedTransaction

DEDUPE_BUFFER_SIZE = 134_217_728
LOAD_FACTOR = 0.9
UNLIMITED = float("inf")


class CleaningAborted(Exception):
    """The job was aborted on request; groups that were not swapped in are discarded."""


class CleanerDied(Exception):
    """The cleaner process exited during a job. Nothing is lost; the job can be repeated."""


class LastRecord(NamedTuple):
    """The last record of an active producer, which is retained: its last data, or a marker with its epoch."""

    last_data_offset: int | None
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """The broker's `log.cleaner.*` configs."""

    enable: bool = True
    threads: int = 1
    dedupe_buffer_size: int = DEDUPE_BUFFER_SIZE
    io_buffer_load_factor: float = LOAD_FACTOR
    io_max_bytes_per_second: float = UNLIMITED
    backoff_ms: int = 15_000


@dataclass(frozen=True, slots=True)
class CleanJob:
    """Compact one log: index the keys in [first_dirty, first_uncleanable), rewrite the segments before."""

    topic_partition: TopicPartition
    directory: str
    config: LogConfig
    segments: tuple[int, ...]
    first_dirty_offset: int
    first_uncleanable_offset: int
    now_ms: int
    aborted: tuple[AbortedTransaction, ...] = ()
    last_records: tuple[tuple[int, LastRecord], ...] = ()
    dedupe_buffer_size: int = DEDUPE_BUFFER_SIZE
    load_factor: float = LOAD_FACTOR
    io_max_bytes_per_second: float = UNLIMITED

    def to_json(self) -> str:
        content: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        config = asdict(self.config)
        config["cleanup_policy"] = sorted(self.config.cleanup_policy)
        content["config"] = {name.replace("_", "."): value for name, value in config.items()}
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str | bytes) -> CleanJob:
        content = json.loads(text)
        content["topic_partition"] = TopicPartition(*content["topic_partition"])
        content["config"] = LogConfig.from_configs(content["config"])
        content["segments"] = tuple(content["segments"])
        content["aborted"] = tuple(AbortedTransaction(*item) for item in content["aborted"])
        content["last_records"] = tuple(
            (producer_id, LastRecord(*last)) for producer_id, last in content["last_records"]
        )
        return cls(**content)


@dataclass(frozen=True, slots=True)
class CleanedGroup:
    """The `.cleaned` segment at `base_offset` is to replace the segments `replaced`."""

    base_offset: int
    replaced: tuple[int, ...]


@dataclass(slots=True)
class CleanResult:
    """The first offset that is not clean, and statistics."""

    next_dirty_offset: int = 0
    map_bytes_read: int = 0
    map_records_read: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    keyless_records: int = 0
    map_utilization: float = 0.0


class CleanerRunner(Protocol):
    """Runs jobs: in a separate process, or inline in tests and simulations."""

    async def run(self, job: CleanJob, swap: Callable[[CleanedGroup], Awaitable[None]]) -> CleanResult:
        """Run a job, calling `swap` for each group when it is ready, in ascending order.

        Raises `CleaningAborted`, `CleanerDied`, `CorruptBatch` (damage in the log), `OSError`.
        """
        ...

    def abort(self, topic_partition: TopicPartition) -> None:
        """Stop the job of a partition, if there is one, as soon as possible."""
        ...

    async def rest(self) -> None:
        """Release memory and processes until the next job."""
        ...
