"""Files of metadata snapshots, also those of Apache Kafka 4.3."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.protocol.stored.metadata import TopicRecord
from moldau.quorum.batches import read_batches
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.snapshots import (
    SnapshotId,
    encode_snapshot,
    list_snapshots,
    read_snapshot,
    read_snapshot_time,
    remove_leftovers,
)
from moldau.storage.disk.disk import PosixDisk
from tests.unit.metadata.builders import uid

DATA = Path(__file__).parent / "data"
DISK = PosixDisk()


class TestSnapshots:
    def test_file_names_and_leftovers(self, tmp_path: Path) -> None:
        assert SnapshotId(147, 1).file_name == "00000000000000000147-0000000001.checkpoint"
        for name in (
            "00000000000000000147-0000000001.checkpoint",
            "00000000000000000054-0000000001.checkpoint",
            "00000000000000000200-0000000002.checkpoint.part",
            "00000000000000000300-0000000002.checkpoint.deleted",
            "00000000000000000400-0000000002.checkpoint.tmp",
            "00000000000000000000.log",
        ):
            (tmp_path / name).touch()
        assert list_snapshots(DISK, str(tmp_path)) == [SnapshotId(54, 1), SnapshotId(147, 1)]
        remove_leftovers(DISK, str(tmp_path))
        assert sorted(path.suffix for path in tmp_path.iterdir()) == [".checkpoint", ".checkpoint", ".log"]

    def test_apache_kafka_snapshot_is_read(self) -> None:
        path = str(DATA / "apache-dynamic" / SnapshotId(147, 1).file_name)
        snapshot = read_snapshot(DISK, path)
        assert len(snapshot.records) == 77
        assert snapshot.voters is not None and snapshot.voters.ids == [1]
        assert read_snapshot_time(DISK, path) == snapshot.last_contained_log_timestamp

    @pytest.mark.parametrize("cut", [0, 1, 50, 166, 2000, 5873, 5947])
    def test_incomplete_snapshot_is_rejected(self, tmp_path: Path, cut: int) -> None:
        data = (DATA / "apache-dynamic" / SnapshotId(147, 1).file_name).read_bytes()
        path = tmp_path / "x.checkpoint"
        path.write_bytes(data[:cut])
        with pytest.raises(UnusableMetadata, match="is damaged"):
            read_snapshot(DISK, str(path))

    def test_corrupt_snapshot_is_rejected(self, tmp_path: Path) -> None:
        data = bytearray((DATA / "apache-dynamic" / SnapshotId(147, 1).file_name).read_bytes())
        data[3000] ^= 1
        path = tmp_path / "x.checkpoint"
        path.write_bytes(data)
        with pytest.raises(UnusableMetadata, match="invalid checksum"):
            read_snapshot(DISK, str(path))

    def test_large_snapshot_has_several_batches(self, tmp_path: Path) -> None:
        topics = [TopicRecord(name=f"topic-{number:0200d}", topic_id=uid(7)) for number in range(10_000)]
        data = encode_snapshot(topics, 30, epoch=3, time_ms=5, last_contained_log_timestamp=4)
        path = tmp_path / "x.checkpoint"
        path.write_bytes(data)
        assert read_snapshot(DISK, str(path)).records == topics
        assert len(list(read_batches(data))) == 5
