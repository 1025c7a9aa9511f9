"""Maintenance: merging small files, and removing old snapshots with their files.

Files of similar size in a partition are merged when there are at least `compact-min-files`, so that
each row is rewritten a few times only (the number grows with the logarithm of the partition), and the
number of files per partition stays bounded. Both run after a commit, in the connector's first task. A
commit of another task in between is no conflict for either.
"""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from moldau.pipelines.connect.connectors.lake.iceberg.expiry import expire
from moldau.pipelines.connect.connectors.lake.iceberg.files import (
    DataFiles,
    delete_files,
    read,
    tasks,
    write,
)
from moldau.pipelines.connect.connectors.lake.iceberg.snapshots import history, snapshot_properties
from moldau.pipelines.connect.connectors.lake.settings import (
    COMPACT_FILES,
    MAX_SNAPSHOTS,
    SNAPSHOT_AGE,
    TARGET_BYTES,
    LakeSettings,
)

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, Table

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 10
_MIN_TIER: Final = 64 << 10
_EXPIRE_EVERY_S: Final = 60.0


class Maintenance:
    def __init__(self, settings: LakeSettings, branch: str) -> None:
        self._branch = branch
        self._min_files: int = settings[COMPACT_FILES]
        self._target_bytes: int = settings[TARGET_BYTES]
        self._age_ms: int = settings[SNAPSHOT_AGE]
        self._most: int = settings[MAX_SNAPSHOTS]
        #: Files of the table after the last look; fewer new ones cannot fill a group.
        self._looked_at = 0
        self._expired_at = -_EXPIRE_EVERY_S

    def run(self, table: Table, offsets_property: str) -> None:
        if self._min_files > 1 and self._files(table) - self._looked_at >= self._min_files:
            self._compact(table, offsets_property)
            table.refresh()
            self._looked_at = self._files(table)
        if len(table.metadata.snapshots) > self._most * 1.1 or (
            time.monotonic() - self._expired_at >= _EXPIRE_EVERY_S
        ):
            self._expired_at = time.monotonic()
            expire(table, self._branch, self._age_ms, self._most)

    def _files(self, table: Table) -> int:
        snapshot = table.metadata.snapshot_by_name(self._branch)
        found = {} if snapshot is None else snapshot_properties(snapshot)
        return int(found.get("total-data-files", 0))

    def _compact(self, table: Table, offsets_property: str) -> None:
        for group in groups(list(tasks(table, self._branch)), self._min_files, self._target_bytes):
            files = DataFiles(write(table, read(table, group)), [each.file for each in group])
            if self._commit(table, files, offsets_property):
                logger.info("%d files of %s were merged.", len(group), table.name())
            else:
                delete_files(table, files)

    def _commit(self, table: Table, files: DataFiles, offsets_property: str) -> bool:
        """Replace the files; False if one of them is gone, or others commit all the time."""
        from pyiceberg.exceptions import CommitFailedException, ValidationException

        for _ in range(_ATTEMPTS):
            table.refresh()
            table.metadata.properties["commit.retry.num-retries"] = "0"
            transaction = table.transaction()
            update = transaction.update_snapshot(self._kept(table, offsets_property), self._branch)
            try:
                with update.overwrite() as snapshot:
                    for old in files.replaced:
                        snapshot.delete_data_file(old)
                    for new in files.added:
                        snapshot.append_data_file(new)
                transaction.commit_transaction()
            except ValidationException:
                return False
            except CommitFailedException:
                continue
            return True
        return False

    def _kept(self, table: Table, offsets_property: str) -> dict[str, str]:
        """Return the offsets of the current snapshot, which the new one has to repeat."""
        for snapshot in history(table, self._branch):
            text = snapshot_properties(snapshot).get(offsets_property)
            if text is not None:
                return {offsets_property: text}
        return {}


def groups(files: Sequence[FileScanTask], min_files: int, target_bytes: int) -> Iterator[list[FileScanTask]]:
    """Return the files to merge, per partition and tier of size."""
    tiers: dict[Hashable, list[FileScanTask]] = defaultdict(list)
    for task in files:
        size = task.file.file_size_in_bytes
        if size < target_bytes // 2:
            tier = int(math.log(max(size, _MIN_TIER) / _MIN_TIER, max(min_files, 2)))
            tiers[task.file.spec_id, _partition(task), tier].append(task)
    for chosen in tiers.values():
        if len(chosen) >= min_files:
            yield from _bins(chosen, target_bytes)


def _bins(files: Sequence[FileScanTask], target_bytes: int) -> Iterator[list[FileScanTask]]:
    chosen: list[FileScanTask] = []
    size = 0
    for task in files:
        if chosen and size + task.file.file_size_in_bytes > target_bytes:
            yield chosen
            chosen, size = [], 0
        chosen.append(task)
        size += task.file.file_size_in_bytes
    if len(chosen) > 1:
        yield chosen


def _partition(task: FileScanTask) -> tuple[Any, ...]:
    record = task.file.partition
    return tuple(record[index] for index in range(len(record)))
