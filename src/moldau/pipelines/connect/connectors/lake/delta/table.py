"""One Delta table: creation, evolution, and commits that carry offsets.

The next offset of each partition is the version of an application transaction
(`CONNECTOR:TOPIC:PARTITION`), the feature of Delta that is made for this. A commit fails if another one has
changed one of its transactions since the table was loaded, so the check of the offsets and the commit are
atomic. The offsets are also in the commit's metadata, where `DeltaTable.history` shows them.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.connectors.lake.delta.partitions import (
    column_name,
    derived_columns,
    with_partitions,
)
from moldau.pipelines.connect.connectors.lake.rows.types import plain_schema
from moldau.pipelines.connect.connectors.lake.settings import (
    AUTO_CREATE,
    COMPACT_FILES,
    SNAPSHOT_AGE,
    TARGET_BYTES,
    LakeSettings,
)
from moldau.pipelines.connect.connectors.lake.store import Commit, LakeUnavailable, Offsets, offsets_text
from moldau.pipelines.connect.data.errors import ConnectError

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 20
_MAX_WAIT_S: Final = 1.0
_CLEAN_EVERY_S: Final = 600.0
_MAX_FILES: Final = 100
_DELETED: Final = "__deleted"
#: The version of a transaction whose offset was removed; offsets are never negative.
_REMOVED: Final = -1


class DeltaLakeTable:
    widens = False
    has_times = False

    def __init__(self, name: str, location: str, settings: LakeSettings) -> None:
        self.name = name
        self._location = location
        self._settings = settings
        self._storage = settings.below("storage.")
        self._partitions = settings.partitions(name)
        self._derived = derived_columns(self._partitions)
        #: Files after the last compaction.
        self._files = 0
        self._cleaned_at = time.monotonic()

    def load(self, partitions: Iterable[TopicPartition]) -> tuple[pa.Schema | None, Offsets]:
        with self._reachable():
            table = self._loaded()
            if table is None:
                return None, {}
            return self._columns(table), self._offsets(table, partitions)

    def commit(self, commit: Commit) -> None:
        from deltalake.exceptions import CommitFailedError

        with self._reachable():
            for attempt in range(_ATTEMPTS):
                table = self._loaded() or self._created(commit)
                if table is None:
                    continue
                if commit.is_stored(self._offsets(table, commit.offsets)):
                    return
                try:
                    self._write(table, commit)
                except CommitFailedError as error:
                    logger.info("The table %s has changed, commit again: %s", self.name, error)
                    _pause(attempt)
                else:
                    return
        raise LakeUnavailable(f"The table {self.name} was changed by others during {_ATTEMPTS} commits.")

    def set_offsets(self, changes: Mapping[TopicPartition, int | None]) -> None:
        from deltalake import write_deltalake

        with self._reachable():
            table = self._loaded()
            if table is not None:
                empty = pa.schema(table.schema().to_arrow()).empty_table()
                found = {each: _REMOVED if at is None else at for each, at in changes.items()}
                write_deltalake(table, empty, mode="append", commit_properties=self._properties(found))

    def maintain(self) -> None:
        """Merge small files, and remove files that are not in use for the configured time."""
        from deltalake.exceptions import CommitFailedError

        with self._reachable():
            table = self._loaded()
            if table is None:
                return
            try:
                if self._needs_compaction(table):
                    table.optimize.compact(target_size=self._settings[TARGET_BYTES])
                    self._files = len(table.file_uris())
                if time.monotonic() - self._cleaned_at >= _CLEAN_EVERY_S:
                    self._cleaned_at = time.monotonic()
                    self.clean(table)
            except CommitFailedError as error:
                logger.info("The table %s is maintained later: %s", self.name, error)

    def clean(self, table: DeltaTable) -> None:
        age_ms: int = self._settings[SNAPSHOT_AGE]
        if age_ms >= 0:
            hours = age_ms // 3_600_000
            table.vacuum(hours, dry_run=False, enforce_retention_duration=False)

    def _needs_compaction(self, table: DeltaTable) -> bool:
        """Return whether there are enough new small files, also compared with those to rewrite with them."""
        least, target = self._settings[COMPACT_FILES], self._settings[TARGET_BYTES]
        actions = pa.table(table.get_add_actions(flatten=True)).column("size_bytes").to_pylist()
        small = sorted(size for size in actions if size < target)
        if least < 2 or len(small) < least or len(actions) - self._files < least:
            return False
        return sum(small[:-1]) * 2 >= small[-1] or len(small) >= _MAX_FILES

    def _loaded(self) -> DeltaTable | None:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            return DeltaTable(self._location, storage_options=self._storage or None)
        except TableNotFoundError:
            return None

    def _created(self, commit: Commit) -> DeltaTable | None:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        if not self._settings[AUTO_CREATE]:
            raise ConnectError(f"The table {self.name} does not exist any more.")
        schema = with_partitions(commit.schema.empty_table(), self._partitions).schema
        try:
            return DeltaTable.create(
                self._location,
                schema,
                mode="error",
                partition_by=[column_name(each) for each in self._partitions] or None,
                configuration=self._settings.below("tables.auto-create-props."),
                storage_options=self._storage or None,
            )
        except DeltaError as error:
            if "already exists" in str(error):
                return None
            raise

    def _columns(self, table: DeltaTable) -> pa.Schema:
        """Return the columns without those that partitioning adds."""
        found = plain_schema(pa.schema(table.schema().to_arrow()))
        return pa.schema([field for field in found if field.name not in self._derived])

    def _write(self, table: DeltaTable, commit: Commit) -> None:
        from deltalake import write_deltalake

        properties = self._properties(commit.offsets)
        if commit.changes.keys is None:
            rows = with_partitions(commit.changes.rows, self._partitions)
            write_deltalake(table, rows, mode="append", schema_mode="merge", commit_properties=properties)
        else:
            self._merge(table, commit, properties)

    def _merge(self, table: DeltaTable, commit: Commit, properties: CommitProperties) -> None:
        source = with_partitions(_with_deletes(commit), self._partitions)
        names = [name for name in source.column_names if name != _DELETED]
        values = {_quoted(name): f"s.{_quoted(name)}" for name in names}
        matches = " AND ".join(f"t.{_quoted(name)} = s.{_quoted(name)}" for name in commit.key)
        merger = table.merge(
            source,
            matches,
            source_alias="s",
            target_alias="t",
            merge_schema=True,
            commit_properties=properties,
        )
        merger = merger.when_matched_delete(f"s.{_DELETED}")
        merger = merger.when_matched_update(values, predicate=f"NOT s.{_DELETED}")
        merger.when_not_matched_insert(values, predicate=f"NOT s.{_DELETED}").execute()

    def _properties(self, offsets: Offsets) -> CommitProperties:
        from deltalake import CommitProperties, Transaction

        marks = [Transaction(self._application(each), at) for each, at in offsets.items()]
        known = {each: at for each, at in offsets.items() if at >= 0}
        metadata: dict[str, Any] = {f"kafka.connect.{self._settings.connector}.offsets": offsets_text(known)}
        return CommitProperties(custom_metadata=metadata, app_transactions=marks)

    def _offsets(self, table: DeltaTable, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        found = {each: table.transaction_version(self._application(each)) for each in partitions}
        return {each: at for each, at in found.items() if at is not None and at >= 0}

    def _application(self, partition: TopicPartition) -> str:
        return f"{self._settings.connector}:{partition.topic}:{partition.partition}"

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        """Turn failures of the storage into `LakeUnavailable`."""
        from deltalake.exceptions import DeltaError, DeltaProtocolError, SchemaMismatchError

        try:
            yield
        except (DeltaProtocolError, SchemaMismatchError) as error:
            raise ConnectError(f"The table {self.name} cannot take the rows: {error}") from error
        except (DeltaError, OSError) as error:
            raise LakeUnavailable(f"The table {self.name} is not available: {error}") from error


def _with_deletes(commit: Commit) -> pa.Table:
    """Return the rows and the deleted keys, told apart by a column."""
    rows, keys = commit.changes.rows, commit.changes.keys
    live = rows.append_column(_DELETED, pa.array([False] * rows.num_rows, pa.bool_()))
    if keys is None:
        return live
    names = keys.column_names
    gone = keys.join(rows.select(names), keys=names, join_type="left anti")
    columns = [
        gone.column(field.name).cast(field.type)
        if field.name in names
        else pa.nulls(gone.num_rows, field.type)
        for field in rows.schema
    ]
    schema = pa.schema([field.with_nullable(True) for field in live.schema])
    deleted = pa.Table.from_arrays([*columns, pa.array([True] * gone.num_rows, pa.bool_())], schema=schema)
    return pa.concat_tables([live.cast(schema), deleted])


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _pause(attempt: int) -> None:
    time.sleep(random.uniform(0.01, min(0.05 * 2**attempt, _MAX_WAIT_S)))
