"""One Iceberg table: creation, evolution, and commits that carry offsets.

The summary of each snapshot contains the offsets of all partitions of the connector, so the current
snapshot, or the youngest ancestor that has them, tells where to continue. A commit is made against the
snapshot whose offsets were checked; if the branch has moved meanwhile, the catalog refuses it, and the
check is repeated.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.connectors.lake.iceberg.catalog import reachable
from moldau.pipelines.connect.connectors.lake.iceberg.files import (
    DataFiles,
    delete_files,
    table_columns,
    written,
)
from moldau.pipelines.connect.connectors.lake.iceberg.maintenance import Maintenance
from moldau.pipelines.connect.connectors.lake.iceberg.partitions import add_partitions
from moldau.pipelines.connect.connectors.lake.iceberg.snapshots import history, snapshot_properties
from moldau.pipelines.connect.connectors.lake.rows.evolution import Evolution, evolved
from moldau.pipelines.connect.connectors.lake.settings import (
    AUTO_CREATE,
    COMMIT_BRANCH,
    EVOLVE,
    LakeSettings,
)
from moldau.pipelines.connect.connectors.lake.store import (
    Commit,
    LakeUnavailable,
    Offsets,
    changed,
    offsets_text,
    parsed_offsets,
)
from moldau.pipelines.connect.data.errors import ConnectError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 20
_MAX_WAIT_S: Final = 1.0
#: Settings of new tables: manifests are merged, old metadata files are removed.
_TABLE_PROPERTIES: Final[Mapping[str, str]] = {
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "20",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "write.parquet.compression-codec": "zstd",
}


class IcebergTable:
    widens = True
    has_times = True

    def __init__(self, catalog: Catalog, name: str, settings: LakeSettings) -> None:
        if "." not in name:
            raise ConnectError(f"The table {name} has no namespace: write NAMESPACE.{name}")
        self.name = name
        self._catalog = catalog
        self._settings = settings
        self._branch: str = settings.of_table(name, "commit-branch") or settings[COMMIT_BRANCH] or "main"
        self._property = offsets_property(settings.connector)
        self._maintenance = Maintenance(settings, self._branch)

    def load(self, partitions: Iterable[TopicPartition]) -> tuple[pa.Schema | None, Offsets]:
        with reachable(f"The table {self.name}"):
            table = self._loaded()
            if table is None:
                return None, {}
            return table_columns(table), self._offsets(table)

    def commit(self, commit: Commit) -> None:
        files: DataFiles | None = None
        try:
            with reachable(f"The table {self.name}"):
                for attempt in range(_ATTEMPTS):
                    table = self._ready(commit)
                    stored = self._offsets(table)
                    if commit.is_stored(stored):
                        return
                    if files is None or not files.fits(table):
                        delete_files(table, files)
                        files = written(table, commit.changes, self._branch)
                    if self._try_commit(table, files, changed(stored, commit.offsets)):
                        files = None
                        return
                    if files.replaced:
                        delete_files(table, files)
                        files = None
                    _pause(attempt)
            raise LakeUnavailable(f"The table {self.name} was changed by others during {_ATTEMPTS} commits.")
        except LakeUnavailable:
            # The commit may have succeeded: its files are in use then.
            files = None
            raise
        finally:
            if files is not None and (current := self._loaded()) is not None:
                delete_files(current, files)

    def maintain(self) -> None:
        with reachable(f"The table {self.name}"):
            table = self._loaded()
            if table is not None:
                self._maintenance.run(table, self._property)

    def set_offsets(self, changes: Mapping[TopicPartition, int | None]) -> None:
        with reachable(f"The table {self.name}"):
            for attempt in range(_ATTEMPTS):
                table = self._loaded()
                if table is None:
                    return
                if self._try_commit(table, DataFiles([], []), changed(self._offsets(table), changes)):
                    return
                _pause(attempt)
        raise LakeUnavailable(f"The table {self.name} was changed by others during {_ATTEMPTS} commits.")

    def _loaded(self) -> Table | None:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            table = self._catalog.load_table(self.name)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        return without_retries(table)

    def _ready(self, commit: Commit) -> Table:
        """Return the table with all columns of the commit; create or change it if needed."""
        from pyiceberg.exceptions import CommitFailedException

        for attempt in range(_ATTEMPTS):
            table = self._loaded() or self._created(commit)
            current = table_columns(table)
            wanted = evolved(current, commit.schema, Evolution(True, key=frozenset(commit.key)))
            if wanted is current or not self._settings[EVOLVE]:
                return table
            try:
                with table.update_schema() as update:
                    update.union_by_name(wanted)
                logger.info("The columns of the table %s were changed.", self.name)
            except CommitFailedException:
                _pause(attempt)
        raise LakeUnavailable(
            f"The columns of {self.name} were changed by others during {_ATTEMPTS} commits."
        )

    def _created(self, commit: Commit) -> Table:
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError

        if not self._settings[AUTO_CREATE]:
            raise ConnectError(f"The table {self.name} does not exist any more.")
        namespace = self.name.rpartition(".")[0]
        self._catalog.create_namespace_if_not_exists(namespace)
        properties = {**_TABLE_PROPERTIES, **self._settings.below("tables.auto-create-props.")}
        try:
            with self._catalog.create_table_transaction(
                self.name, commit.schema, properties=properties
            ) as creation:
                with creation.update_spec() as update:
                    add_partitions(update, commit.schema, self._settings.partitions(self.name))
                if commit.key:
                    with creation.update_schema() as columns:
                        columns.set_identifier_fields(*commit.key)
        except (CommitFailedException, TableAlreadyExistsError):
            logger.info("The table %s was created by another task.", self.name)
        return without_retries(self._catalog.load_table(self.name))

    def _try_commit(self, table: Table, files: DataFiles, offsets: Offsets) -> bool:
        """Commit against the snapshot that was loaded; False if the table has changed."""
        from pyiceberg.exceptions import CommitFailedException, ValidationException

        transaction = table.transaction()
        update = transaction.update_snapshot({self._property: offsets_text(offsets)}, self._branch)
        try:
            with update.overwrite() if files.replaced else update.merge_append() as snapshot:
                for old in files.replaced:
                    snapshot.delete_data_file(old)
                for new in files.added:
                    snapshot.append_data_file(new)
            transaction.commit_transaction()
        except (CommitFailedException, ValidationException) as error:
            logger.info("The table %s has changed, commit again: %s", self.name, error)
            return False
        return True

    def _offsets(self, table: Table) -> dict[TopicPartition, int]:
        for snapshot in history(table, self._branch):
            text = snapshot_properties(snapshot).get(self._property)
            if text is not None:
                return parsed_offsets(text)
        return {}


def offsets_property(connector: str) -> str:
    """Return the name of the snapshot property that contains the offsets of a connector."""
    return f"kafka.connect.{connector}.offsets"


def without_retries(table: Table) -> Table:
    """Let commits fail if the table has changed: repeated, they would overwrite offsets of other tasks."""
    table.metadata.properties["commit.retry.num-retries"] = "0"
    return table


def _pause(attempt: int) -> None:
    time.sleep(random.uniform(0.01, min(0.05 * 2**attempt, _MAX_WAIT_S)))
