from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.ids import Uuid
from moldau.storage.directories.partition_metadata import read_topic_id, write_topic_id
from moldau.storage.disk.disk import PosixDisk
from moldau.storage.log.leader_epochs import LeaderEpochs

FILE = "leader-epoch-checkpoint"


def epochs_with(folder: Path, *entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs.load(PosixDisk(), str(folder))
    for epoch, start_offset in entries:
        epochs.assign(epoch, start_offset)
    return epochs


def test_leader_epoch_checkpoint_has_the_bytes_of_kafka(tmp_path: Path) -> None:
    epochs = epochs_with(tmp_path, (0, 0), (3, 100))
    epochs.write()
    assert (tmp_path / FILE).read_text() == "0\n2\n0 0\n3 100\n"
    again = LeaderEpochs.load(PosixDisk(), str(tmp_path))
    assert again.entries == ((0, 0), (3, 100))
    assert again.latest == 3


def test_known_epoch_changes_nothing(tmp_path: Path) -> None:
    epochs = epochs_with(tmp_path, (0, 0), (3, 100), (3, 150))
    assert epochs.entries == ((0, 0), (3, 100))


def test_new_epoch_removes_conflicting_entries(tmp_path: Path) -> None:
    assert epochs_with(tmp_path, (0, 0), (3, 100), (5, 200), (4, 150)).entries == ((0, 0), (3, 100), (4, 150))
    assert epochs_with(tmp_path, (0, 0), (3, 100), (5, 50)).entries == ((0, 0), (5, 50))
    assert epochs_with(tmp_path, (0, 0), (3, 0)).entries == ((3, 0),)


def test_end_offset_for_epoch(tmp_path: Path) -> None:
    epochs = epochs_with(tmp_path, (2, 10), (4, 20), (7, 30))
    assert epochs.end_offset_for(7, 99) == (7, 99)
    assert epochs.end_offset_for(4, 99) == (4, 30)
    assert epochs.end_offset_for(5, 99) == (4, 30)
    assert epochs.end_offset_for(2, 99) == (2, 20)
    assert epochs.end_offset_for(1, 99) == (1, 10)
    assert epochs.end_offset_for(8, 99) == (-1, -1)
    assert epochs.end_offset_for(-1, 99) == (-1, -1)
    assert LeaderEpochs(PosixDisk(), "nowhere").end_offset_for(1, 99) == (-1, -1)


def test_epoch_for_offset(tmp_path: Path) -> None:
    epochs = epochs_with(tmp_path, (2, 10), (4, 20))
    assert [epochs.epoch_for(offset) for offset in (5, 10, 19, 20, 100)] == [-1, 2, 2, 4, 4]


def test_leader_epochs_are_truncated_at_both_ends(tmp_path: Path) -> None:
    entries = ((2, 10), (4, 20), (7, 30))
    epochs = epochs_with(tmp_path, *entries)
    epochs.truncate_from_end(20)
    assert epochs.entries == ((2, 10),)
    assert epochs.latest == 2
    epochs = epochs_with(tmp_path, *entries)
    epochs.truncate_from_start(25)
    assert epochs.entries == ((4, 25), (7, 30))
    epochs = epochs_with(tmp_path, *entries)
    epochs.truncate_from_start(20)
    assert epochs.entries == ((4, 20), (7, 30))
    epochs = epochs_with(tmp_path, *entries)
    epochs.truncate_from_start(5)
    assert epochs.entries == entries


@pytest.mark.parametrize("text", ["", "0\n0\n", "9\n0\n", "0\n2\n0 0\n", "0\nx\n", "0\n1\n0 0 0\n", "\0\0\0"])
def test_damaged_or_empty_leader_epoch_checkpoint_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    epochs = LeaderEpochs.load(PosixDisk(), str(tmp_path))
    assert epochs.entries == ()
    epochs.assign(1, 0)
    epochs.write()
    assert LeaderEpochs.load(PosixDisk(), str(tmp_path)).entries == ((1, 0),)


def test_partition_metadata_has_the_bytes_of_kafka(tmp_path: Path) -> None:
    disk, folder = PosixDisk(), str(tmp_path)
    assert read_topic_id(disk, folder) is None
    topic_id = Uuid(bytes(range(16)))
    write_topic_id(disk, folder, topic_id)
    assert (tmp_path / "partition.metadata").read_text() == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert read_topic_id(disk, folder) == topic_id


@pytest.mark.parametrize(
    "text", ["version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", "version: 0", "gibberish", "\udcff"]
)
def test_malformed_partition_metadata_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "partition.metadata").write_text(text, errors="surrogateescape")
    with pytest.raises(ValueError, match=r"partition.metadata"):
        read_topic_id(PosixDisk(), str(tmp_path))


def test_partition_metadata_lost_in_a_power_cut_counts_as_missing(tmp_path: Path) -> None:
    (tmp_path / "partition.metadata").write_bytes(b"")
    assert read_topic_id(PosixDisk(), str(tmp_path)) is None
