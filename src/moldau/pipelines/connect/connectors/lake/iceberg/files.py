"""Data files: written before a commit, replaced by upserts, deleted if a commit fails.

Iceberg's deletes by equality cannot be written from Python, so an upsert replaces the files that contain
its keys. Files are found by the bounds of their key columns; a file without one of the keys stays as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from moldau.pipelines.connect.connectors.lake.rows.blocks import conformed
from moldau.pipelines.connect.connectors.lake.rows.keys import Changes
from moldau.pipelines.connect.connectors.lake.rows.types import plain_schema

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table

logger = logging.getLogger(__name__)

#: With more keys files are found by the smallest and the largest one.
_MAX_NAMED_KEYS: Final = 200
_ROW: Final = "__row"


@dataclass(slots=True)
class DataFiles:
    """What a commit adds and removes, and the layout of the table for which it was written."""

    added: list[DataFile]
    replaced: list[DataFile]
    layout: tuple[int, int] = field(default=(-1, -1))

    def fits(self, table: Table) -> bool:
        return not self.replaced and self.layout == _layout(table)


def _layout(table: Table) -> tuple[int, int]:
    return table.schema().schema_id, table.spec().spec_id


def table_columns(table: Table) -> pa.Schema:
    """Return the columns of a table as this package writes them."""
    return plain_schema(table.schema().as_arrow())


def written(table: Table, changes: Changes, branch: str) -> DataFiles:
    """Write the files of the changes; an upsert also those that replace existing ones."""
    files = DataFiles([], [], _layout(table))
    try:
        if changes.keys is not None and changes.keys.num_rows:
            _replace(table, changes.keys, branch, files)
        files.added += write(table, changes.rows)
    except Exception:
        delete_files(table, files)
        raise
    return files


def write(table: Table, rows: pa.Table) -> list[DataFile]:
    """Write rows as Parquet, one file per partition or more."""
    from pyiceberg.io.pyarrow import _dataframe_to_data_files

    if not rows.num_rows:
        return []
    columns = table_columns(table)
    known = pa.schema([each for each in columns if each.name in rows.column_names])
    return list(_dataframe_to_data_files(table.metadata, conformed(rows, known), table.io))


def _replace(table: Table, keys: pa.Table, branch: str, files: DataFiles) -> None:
    for task in tasks(table, branch, _matching(keys)):
        rows = read(table, [task])
        kept = without_keys(rows, keys)
        if kept.num_rows < rows.num_rows:
            files.replaced.append(task.file)
            files.added += write(table, kept)


def tasks(table: Table, branch: str, row_filter: BooleanExpression | None = None) -> Iterator[FileScanTask]:
    """Return the live files of a branch that may contain rows of the filter."""
    from pyiceberg.expressions import AlwaysTrue

    if table.metadata.snapshot_by_name(branch) is None:
        return iter(())
    return iter(table.scan(row_filter=row_filter or AlwaysTrue()).use_ref(branch).plan_files())


def read(table: Table, chosen: Sequence[FileScanTask]) -> pa.Table:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    # The filter has found the files; all their rows are needed.
    for task in chosen:
        task.residual = AlwaysTrue()
    found = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_table(chosen)
    return conformed(found, table_columns(table))


def without_keys(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """Return the rows with other keys, in their order."""
    names = keys.column_names
    numbered = rows.select(names).append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))
    typed = conformed(keys, pa.schema([rows.schema.field(name) for name in names]))
    found = numbered.join(typed, keys=names, join_type="left anti")
    return rows.take(found.column(_ROW).combine_chunks().sort())


def _matching(keys: pa.Table) -> BooleanExpression:
    """Return a filter that all rows with one of the keys meet."""
    from pyiceberg import expressions

    # The constructors accept positions, which their annotations do not show.
    make: Any = expressions
    found: BooleanExpression = make.AlwaysTrue()
    for name in keys.column_names:
        values: list[Any] = keys.column(name).unique().to_pylist()
        if len(values) <= _MAX_NAMED_KEYS:
            found = make.And(found, make.In(name, set(values)))
        else:
            bounds = pc.min_max(keys.column(name)).as_py()
            above = make.GreaterThanOrEqual(name, bounds["min"])
            found = make.And(found, above, make.LessThanOrEqual(name, bounds["max"]))
    return found


def delete_files(table: Table, files: DataFiles | None) -> None:
    """Delete files that no snapshot contains."""
    for each in files.added if files is not None else ():
        delete_path(table, each.file_path)


def delete_path(table: Table, path: str) -> None:
    try:
        table.io.delete(path)
    except OSError as error:
        logger.warning("The file %s could not be deleted: %s", path, error)
