"""The files written by `format`, compared with those of Apache Kafka 4.3."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from moldau.base.clock import ManualClock
from moldau.metadata.features import default_levels
from moldau.protocol.stored.metadata import FeatureLevelRecord, TopicRecord
from moldau.quorum.batches import read_batches
from moldau.quorum.bootstrap import (
    bootstrap_records,
    read_bootstrap,
    write_bootstrap,
    write_initial_voters,
)
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.snapshots import (
    SnapshotId,
    encode_snapshot,
    read_snapshot,
)
from moldau.raft.voters import DYNAMIC
from moldau.storage.disk.disk import PosixDisk

DATA = Path(__file__).parent / "data"


DISK = PosixDisk()


APACHE_LEVELS = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


class TestBootstrap:
    def test_apache_kafka_bootstrap_file_is_read(self) -> None:
        assert read_bootstrap(DISK, str(DATA)) == bootstrap_records(APACHE_LEVELS)

    def test_bootstrap_file_matches_apache_kafka(self, tmp_path: Path) -> None:
        write_bootstrap(DISK, ManualClock(), str(tmp_path), bootstrap_records(APACHE_LEVELS))
        ours, theirs = (
            (tmp_path / "bootstrap.checkpoint").read_bytes(),
            (DATA / "bootstrap.checkpoint").read_bytes(),
        )
        assert without_times(ours) == without_times(theirs)
        assert read_bootstrap(DISK, str(tmp_path)) == bootstrap_records(APACHE_LEVELS)

    def test_only_the_owner_can_read_the_keys_of_users(self, tmp_path: Path) -> None:
        write_bootstrap(DISK, ManualClock(), str(tmp_path), bootstrap_records(APACHE_LEVELS))
        assert stat.S_IMODE((tmp_path / "bootstrap.checkpoint").stat().st_mode) == 0o600

    def test_without_a_file_the_defaults_apply(self, tmp_path: Path) -> None:
        assert read_bootstrap(DISK, str(tmp_path)) == bootstrap_records(default_levels())

    def test_levels_of_zero_are_not_written(self) -> None:
        records = bootstrap_records({"group.version": 0, "metadata.version": 30})
        assert records == [FeatureLevelRecord(name="metadata.version", feature_level=30)]

    def test_bootstrap_file_without_metadata_version_is_rejected(self, tmp_path: Path) -> None:
        data = encode_snapshot(
            [TopicRecord(name="a")], 30, epoch=0, time_ms=1, last_contained_log_timestamp=0
        )
        (tmp_path / "bootstrap.checkpoint").write_bytes(data)
        with pytest.raises(UnusableMetadata, match=r"contains no metadata.version"):
            read_bootstrap(DISK, str(tmp_path))

    def test_initial_voters_snapshot_matches_apache_kafka(self, tmp_path: Path) -> None:
        path = DATA / "apache-dynamic" / SnapshotId(0, 0).file_name
        theirs = read_snapshot(DISK, str(path))
        assert theirs.kraft_version == DYNAMIC
        assert theirs.voters is not None
        write_initial_voters(DISK, ManualClock(), str(tmp_path), theirs.voters)
        ours = tmp_path / "__cluster_metadata-0" / SnapshotId(0, 0).file_name
        assert without_times(ours.read_bytes()) == without_times(path.read_bytes())


def without_times(data: bytes) -> list[object]:
    """Return the batches of a snapshot without timestamps and checksums."""
    batches = []
    for batch in read_batches(data):
        header = batch.header._replace(crc=0, base_timestamp=0, max_timestamp=0)
        control = [repr(message).partition("last_contained")[0] for message in batch.control]
        batches.append((header, batch.records, control))
    return batches
