"""The snapshots of a branch, and what a reader looks up in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


def history(table: Table, branch: str) -> Iterator[Snapshot]:
    """Return the snapshots of a branch that still exist, the youngest first."""
    snapshot = table.metadata.snapshot_by_name(branch)
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.metadata.snapshot_by_id(parent)


def snapshot_properties(snapshot: Snapshot) -> Mapping[str, str]:
    return {} if snapshot.summary is None else snapshot.summary.additional_properties
