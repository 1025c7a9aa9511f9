"""One segment of a log: a `.log` file of record batches and the three indexes beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moldau.protocol.records import BatchHeader
from moldau.storage.disk import Buffer
from moldau.storage.log_config import LogConfig
from moldau.storage.open_files import OpenFiles


class StoredBatch(NamedTuple):
    """A batch as it lies in a segment; `data` is the whole batch, header included."""

    position: int
    header: BatchHeader
    data: memoryview


class Segment:
    """`size` is the number of valid bytes of the `.log`; the other attributes are filled in lazily."""

    base_offset: int
    size: int
    created_ms: int

    @classmethod
    def open(
        cls, files: OpenFiles, directory: str, base_offset: int, config: LogConfig, *, suffix: str = ""
    ) -> Segment:
        """A segment whose `.log` exists. Reads nothing but its size."""
        raise NotImplementedError

    @classmethod
    def create(
        cls,
        files: OpenFiles,
        directory: str,
        base_offset: int,
        config: LogConfig,
        *,
        now_ms: int,
        suffix: str = "",
    ) -> Segment:
        """A new, empty segment; leftovers of the same name are removed.

        `suffix` is `.cleaned` for the cleaner.
        """
        raise NotImplementedError

    def append(
        self,
        data: Buffer,
        *,
        last_offset: int,
        max_timestamp: int,
        offset_of_max_timestamp: int,
        position_of_last_batch: int = 0,
    ) -> None:
        """Write whole batches at the end and keep the indexes. On `OSError` the file is as it was before."""
        raise NotImplementedError

    def batches(self, position: int = 0, end: int | None = None) -> Iterator[StoredBatch]:
        """The batches from `position` on, read in large blocks; `CorruptBatch` at the first impossible header."""
        raise NotImplementedError

    def position_of(self, offset: int) -> int | None:
        """Where the batch begins that holds `offset` or, failing that, the first one behind it; None: past the end."""
        raise NotImplementedError

    def next_offset(self) -> int:
        """The offset behind the last batch (read from the tail)."""
        raise NotImplementedError

    def largest_timestamp(self) -> int:
        """The largest timestamp of its records, or when the file was modified if no record has one."""
        raise NotImplementedError

    def path(self, kind: str) -> str:
        """The path of one of its files: `log`, `index`, `timeindex`, `txnindex`."""
        raise NotImplementedError

    def paths(self) -> list[str]:
        """All of its files that exist."""
        raise NotImplementedError

    def change_suffix(self, suffix: str) -> None:
        """Rename all its files, e.g. to `.deleted`."""
        raise NotImplementedError

    def finish(self) -> None:
        """No more appends: write out and trim the indexes (the last time index entry too)."""
        raise NotImplementedError

    def flush(self) -> None:
        """Write out and fsync every file."""
        raise NotImplementedError

    def modified_ms(self) -> int:
        raise NotImplementedError

    def set_modified(self, time_ms: int) -> None:
        """For the cleaner: a cleaned segment keeps the time of what it replaces."""
        raise NotImplementedError
