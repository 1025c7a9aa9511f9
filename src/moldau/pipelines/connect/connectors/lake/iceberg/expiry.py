"""Removing old snapshots, and the files that only they contain.

The oldest snapshots of a linear history are removed. Unused afterwards are the data files that were deleted
up to the oldest one that remains, and the manifests that it does not contain. If the history is not linear
(branches, tags, rollbacks), only the snapshots are removed, and files are left to the tools of the catalog.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from moldau.pipelines.connect.connectors.lake.iceberg.files import delete_path
from moldau.pipelines.connect.connectors.lake.iceberg.snapshots import history

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

logger = logging.getLogger(__name__)


def expire(table: Table, branch: str, age_ms: int, most: int) -> int:
    """Remove snapshots that are too old or too many; return how many were removed."""
    from pyiceberg.exceptions import CommitFailedException

    line = list(history(table, branch))
    oldest_ms = -1 if age_ms < 0 else int(time.time() * 1000) - age_ms
    kept = [each for each in line[:most] if each is line[0] or each.timestamp_ms >= oldest_ms]
    referenced = {ref.snapshot_id for ref in table.metadata.refs.values()}
    expired = [each for each in line[len(kept) :] if each.snapshot_id not in referenced]
    if not expired:
        return 0
    is_linear = len(line) == len(table.metadata.snapshots) and referenced == {line[0].snapshot_id}
    unused = _unused(table, kept[-1], expired) if is_linear else set()
    try:
        table.maintenance.expire_snapshots().by_ids([each.snapshot_id for each in expired]).commit()
    except CommitFailedException as error:
        logger.info("Snapshots of %s are removed later: %s", table.name(), error)
        return 0
    for path in sorted(unused):
        delete_path(table, path)
    return len(expired)


def _unused(table: Table, oldest: Snapshot, expired: list[Snapshot]) -> set[str]:
    """Return the paths of data files, manifests and manifest lists that only the expired snapshots use."""
    from pyiceberg.manifest import ManifestEntryStatus

    remaining = {each.manifest_path for each in oldest.manifests(table.io)}
    unused: set[str] = set()
    # What the last one has deleted was removed when it became the oldest.
    settled = expired[-1]
    for snapshot in (oldest, *expired):
        manifests = snapshot.manifests(table.io)
        for manifest in manifests if snapshot is not settled else ():
            if manifest.added_snapshot_id == snapshot.snapshot_id and manifest.deleted_files_count:
                unused.update(
                    entry.data_file.file_path
                    for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
                    if entry.status == ManifestEntryStatus.DELETED
                )
        if snapshot is not oldest:
            unused.add(snapshot.manifest_list)
            unused.update(each.manifest_path for each in manifests if each.manifest_path not in remaining)
    return unused
