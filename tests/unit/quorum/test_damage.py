"""Which damage to a metadata log recovery may truncate."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.quorum.batches import control_batch, data_batch, leader_change
from moldau.quorum.damage import check_log
from moldau.quorum.errors import UnusableMetadata
from moldau.storage.disk.disk import PosixDisk

VALUE = b"\x01\x14\x00\x00"


def batch(offset: int, epoch: int, time_ms: int) -> bytes:
    return bytes(data_batch([VALUE], offset, epoch, time_ms))


def begin(offset: int, epoch: int, leader: int, time_ms: int) -> bytes:
    return bytes(control_batch([leader_change(leader, [1, 2, 3], [1, 2])], offset, epoch, time_ms))


def broken(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 0xFF])


def check(folder: Path, *segments: bytes, led_epoch: int = -1) -> None:
    for number, data in enumerate(segments):
        (folder / f"{number * 100:020d}.log").write_bytes(data)
    check_log(PosixDisk(), str(folder), 1, led_epoch)


class TestAsLeader:
    HEAD = begin(0, 5, leader=1, time_ms=10)

    def test_torn_last_write_is_accepted(self, tmp_path: Path) -> None:
        check(tmp_path, self.HEAD + broken(batch(1, 5, 20)) + batch(2, 5, 20))

    def test_damage_before_later_writes_is_rejected(self, tmp_path: Path) -> None:
        with pytest.raises(UnusableMetadata, match="invalid batch at position"):
            check(tmp_path, self.HEAD + broken(batch(1, 5, 20)) + batch(2, 5, 30) + batch(3, 5, 40))

    def test_damage_before_another_segment_is_rejected(self, tmp_path: Path) -> None:
        with pytest.raises(UnusableMetadata):
            check(tmp_path, self.HEAD + broken(batch(1, 5, 20)), batch(100, 5, 30))

    def test_damaged_leader_change_record_is_rejected(self, tmp_path: Path) -> None:
        with pytest.raises(UnusableMetadata):
            check(tmp_path, broken(self.HEAD) + batch(1, 5, 20) + batch(2, 5, 30), led_epoch=5)


class TestAsFollower:
    HEAD = begin(0, 5, leader=2, time_ms=10)

    def test_damage_within_a_fetch_of_many_writes_is_accepted(self, tmp_path: Path) -> None:
        check(tmp_path, self.HEAD + broken(batch(1, 5, 20)) + batch(2, 5, 30) + batch(3, 5, 40))
        check(tmp_path, self.HEAD + broken(batch(1, 5, 20)), batch(100, 5, 30))

    def test_damage_before_an_epoch_led_by_this_node_is_rejected(self, tmp_path: Path) -> None:
        own = begin(2, 6, leader=1, time_ms=30) + batch(3, 6, 40)
        with pytest.raises(UnusableMetadata):
            check(tmp_path, self.HEAD + broken(batch(1, 5, 20)) + own)


def test_undamaged_log_is_accepted(tmp_path: Path) -> None:
    check(tmp_path, begin(0, 5, leader=1, time_ms=10) + batch(1, 5, 20), batch(100, 5, 30))
    check_log(PosixDisk(), str(tmp_path / "nowhere"), 1, -1)
