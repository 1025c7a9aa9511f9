"""The files of the quorum, byte for byte as Apache Kafka 4.3 writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moldau.base.clock import ManualClock
from moldau.base.ids import ZERO_UUID
from moldau.metadata.features import default_levels
from moldau.protocol.stored.metadata import FeatureLevelRecord, TopicRecord
from moldau.quorum.batches import control_batch, leader_change, read_batches
from moldau.quorum.bootstrap import (
    bootstrap_records,
    read_bootstrap,
    write_bootstrap,
    write_initial_voters,
)
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.quorum_state_file import read_quorum_state, write_quorum_state
from moldau.quorum.snapshots import (
    SnapshotId,
    encode_snapshot,
    list_snapshots,
    read_snapshot,
    read_snapshot_time,
    remove_leftovers,
)
from moldau.raft.types import ElectionState
from moldau.raft.voters import DYNAMIC, STATIC, Voter, VoterEndpoint, VoterSet
from moldau.storage.disk.disk import PosixDisk
from tests.unit.metadata.builders import uid

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
    def test_apaches_file_is_read(self) -> None:
        assert read_bootstrap(DISK, str(DATA)) == bootstrap_records(APACHE_LEVELS)

    def test_ours_is_as_long_as_apaches(self, tmp_path: Path) -> None:
        write_bootstrap(DISK, ManualClock(), str(tmp_path), bootstrap_records(APACHE_LEVELS))
        ours, theirs = (
            (tmp_path / "bootstrap.checkpoint").read_bytes(),
            (DATA / "bootstrap.checkpoint").read_bytes(),
        )
        assert without_times(ours) == without_times(theirs)
        assert read_bootstrap(DISK, str(tmp_path)) == bootstrap_records(APACHE_LEVELS)

    def test_without_a_file_the_defaults_apply(self, tmp_path: Path) -> None:
        assert read_bootstrap(DISK, str(tmp_path)) == bootstrap_records(default_levels())

    def test_levels_of_zero_are_not_written(self) -> None:
        records = bootstrap_records({"group.version": 0, "metadata.version": 30})
        assert records == [FeatureLevelRecord(name="metadata.version", feature_level=30)]

    def test_a_file_without_a_metadata_version(self, tmp_path: Path) -> None:
        data = encode_snapshot(
            [TopicRecord(name="a")], 30, epoch=0, time_ms=1, last_contained_log_timestamp=0
        )
        (tmp_path / "bootstrap.checkpoint").write_bytes(data)
        with pytest.raises(UnusableMetadata, match=r"contains no metadata.version"):
            read_bootstrap(DISK, str(tmp_path))

    def test_initial_voters(self, tmp_path: Path) -> None:
        path = DATA / "apache-dynamic" / SnapshotId(0, 0).file_name
        theirs = read_snapshot(DISK, str(path))
        assert theirs.kraft_version == DYNAMIC
        assert theirs.voters is not None
        write_initial_voters(DISK, ManualClock(), str(tmp_path), theirs.voters)
        ours = tmp_path / "__cluster_metadata-0" / SnapshotId(0, 0).file_name
        assert without_times(ours.read_bytes()) == without_times(path.read_bytes())


def without_times(data: bytes) -> list[object]:
    """The batches of a snapshot without what depends on the clock."""
    batches = []
    for batch in read_batches(data):
        header = batch.header._replace(crc=0, base_timestamp=0, max_timestamp=0)
        control = [repr(message).partition("last_contained")[0] for message in batch.control]
        batches.append((header, batch.records, control))
    return batches


class TestQuorumState:
    def test_dynamic(self, tmp_path: Path) -> None:
        path = str(tmp_path / "quorum-state")
        state = ElectionState(leader_id=1, leader_epoch=1)
        write_quorum_state(DISK, path, state, kraft_version=DYNAMIC, voters=VoterSet())
        assert Path(path).read_bytes() == (DATA / "apache-dynamic" / "quorum-state").read_bytes()
        assert read_quorum_state(DISK, path) == state

    def test_static(self, tmp_path: Path) -> None:
        path = str(tmp_path / "quorum-state")
        state = ElectionState(leader_id=1, leader_epoch=1)
        voters = VoterSet.of([Voter(1)])
        write_quorum_state(DISK, path, state, kraft_version=STATIC, voters=voters)
        assert Path(path).read_bytes() == (DATA / "apache-static" / "quorum-state").read_bytes()
        assert read_quorum_state(DISK, path) == state

    def test_none_yet(self, tmp_path: Path) -> None:
        assert read_quorum_state(DISK, str(tmp_path / "quorum-state")) is None

    @pytest.mark.parametrize(
        "content", [b"", b"{", b"[]", b"{}", b'{"data_version":7}', json.dumps({"data_version": 1}).encode()]
    )
    def test_damaged(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "quorum-state"
        path.write_bytes(content)
        with pytest.raises(UnusableMetadata, match="quorum-state is damaged"):
            read_quorum_state(DISK, str(path))


class TestSnapshots:
    def test_names(self, tmp_path: Path) -> None:
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

    def test_apaches(self) -> None:
        path = str(DATA / "apache-dynamic" / SnapshotId(147, 1).file_name)
        snapshot = read_snapshot(DISK, path)
        assert len(snapshot.records) == 77
        assert snapshot.voters is not None and snapshot.voters.ids == [1]
        assert read_snapshot_time(DISK, path) == snapshot.last_contained_log_timestamp

    @pytest.mark.parametrize("cut", [0, 1, 50, 166, 2000, 5873, 5947])
    def test_cut_off(self, tmp_path: Path, cut: int) -> None:
        data = (DATA / "apache-dynamic" / SnapshotId(147, 1).file_name).read_bytes()
        path = tmp_path / "x.checkpoint"
        path.write_bytes(data[:cut])
        with pytest.raises(UnusableMetadata, match="is damaged"):
            read_snapshot(DISK, str(path))

    def test_a_flipped_bit(self, tmp_path: Path) -> None:
        data = bytearray((DATA / "apache-dynamic" / SnapshotId(147, 1).file_name).read_bytes())
        data[3000] ^= 1
        path = tmp_path / "x.checkpoint"
        path.write_bytes(data)
        with pytest.raises(UnusableMetadata, match="invalid checksum"):
            read_snapshot(DISK, str(path))

    def test_large_ones_come_in_several_batches(self, tmp_path: Path) -> None:
        topics = [TopicRecord(name=f"topic-{number:0200d}", topic_id=uid(7)) for number in range(10_000)]
        data = encode_snapshot(topics, 30, epoch=3, time_ms=5, last_contained_log_timestamp=4)
        path = tmp_path / "x.checkpoint"
        path.write_bytes(data)
        assert read_snapshot(DISK, str(path)).records == topics
        assert len(list(read_batches(data))) == 5


class TestVoters:
    def test_records(self) -> None:
        voters = VoterSet.of(
            [Voter(2, uid(2), (VoterEndpoint("C", "b", 2),)), Voter(1, uid(1), (VoterEndpoint("C", "a", 1),))]
        )
        assert voters.ids == [1, 2]
        assert VoterSet.from_record(voters.to_record()) == voters
        moved = voters.with_voter(Voter(2, uid(2), (VoterEndpoint("C", "elsewhere", 2),)))
        assert moved.get(2) == Voter(2, uid(2), (VoterEndpoint("C", "elsewhere", 2),))
        assert voters.get(3) is None
        assert Voter(1).directory_id == ZERO_UUID

    def test_a_leader_change_is_as_long_as_apaches(self) -> None:
        batch = control_batch([leader_change(1, [1], [1])], 0, 1, 1794755766549)
        theirs = (DATA / "apache-static" / "00000000000000000000.log").read_bytes()[: len(batch)]
        assert bytes(batch) == theirs
