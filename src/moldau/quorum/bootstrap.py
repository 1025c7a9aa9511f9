"""The files that `format` writes into a metadata folder for the first start.

`bootstrap.checkpoint` contains the records that the first active controller writes into the empty log, mainly
the feature levels. A dynamic quorum also gets its voter set, as a snapshot at offset 0 in the folder of the
metadata log.

The metadata has secrets: the keys of SCRAM users, and passwords of key stores that were changed at run time,
which Kafka stores as they are. Only the owner of the folder of the log and of `bootstrap.checkpoint` can read
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moldau.base.clock import Clock
from moldau.base.ids import METADATA_TOPIC
from moldau.metadata.features import METADATA_VERSION, default_levels
from moldau.metadata.records import MetadataRecord
from moldau.protocol.stored.metadata import FeatureLevelRecord
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.snapshots import SnapshotId, encode_snapshot, read_snapshot
from moldau.raft.voters import VoterSet
from moldau.storage.disk.disk import Disk, make_durable_dirs

FILE_NAME = "bootstrap.checkpoint"
LOG_FOLDER = f"{METADATA_TOPIC}-0"


def make_log_folder(disk: Disk, folder: str) -> None:
    """Create the folder of the metadata log, for its owner only, unless it exists."""
    if not disk.exists(folder):
        make_durable_dirs(disk, folder)
        disk.make_private(folder)


def bootstrap_records(levels: Mapping[str, int]) -> list[MetadataRecord]:
    """Return feature levels as records: `metadata.version`, then the others by name, without levels of 0."""
    names = [METADATA_VERSION, *sorted(name for name in levels if name != METADATA_VERSION)]
    return [FeatureLevelRecord(name=name, feature_level=levels[name]) for name in names if levels[name] > 0]


def metadata_version_of(records: Sequence[MetadataRecord], source: str) -> int:
    """Return the `metadata.version` in bootstrap records."""
    for record in reversed(records):
        if isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION:
            return record.feature_level
    raise UnusableMetadata(f"{source} contains no metadata.version; format the folder again.")


def write_bootstrap(disk: Disk, clock: Clock, directory: str, records: Sequence[MetadataRecord]) -> None:
    """Write `bootstrap.checkpoint` into a log directory."""
    path = f"{directory}/{FILE_NAME}"
    data = encode_snapshot(
        records,
        metadata_version_of(records, path),
        epoch=0,
        time_ms=clock.time_ms(),
        last_contained_log_timestamp=0,
    )
    disk.write_atomic(path, data, private=True)


def read_bootstrap(disk: Disk, directory: str) -> list[MetadataRecord]:
    """Return the records for an empty log; the defaults of this release if the file does not exist."""
    path = f"{directory}/{FILE_NAME}"
    if not disk.exists(path):
        return bootstrap_records(default_levels())
    records = read_snapshot(disk, path).records
    metadata_version_of(records, path)
    return records


def write_initial_voters(disk: Disk, clock: Clock, directory: str, voters: VoterSet) -> None:
    """Write the voter set of a new dynamic quorum as the snapshot before the first record."""
    folder = f"{directory}/{LOG_FOLDER}"
    make_log_folder(disk, folder)
    now = clock.time_ms()
    data = encode_snapshot((), 0, epoch=0, time_ms=now, last_contained_log_timestamp=now, voters=voters)
    disk.write_atomic(f"{folder}/{SnapshotId(0, 0).file_name}", data)
