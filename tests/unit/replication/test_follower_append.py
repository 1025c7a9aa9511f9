from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.clock import ManualClock
from moldau.base.ids import TopicPartition
from moldau.replication.follower_append import truncation_offset, whole_batches
from moldau.storage.disk.disk import PosixDisk
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from tests.harness.wire.batches import batch


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Epoch 1 has offsets 0 to 9, epoch 3 has 10 to 19, epoch 5 has 20 to 29."""
    made = Log.open(
        PosixDisk(), ManualClock(), str(tmp_path / "t-0"), TopicPartition("t", 0), None, LogConfig()
    )
    for epoch in (1, 3, 5):
        for _ in range(10):
            made.append_as_leader(bytearray(batch(timestamp=1_700_000_000_000)), epoch)
    return made


class TestTruncation:
    @pytest.mark.parametrize(
        ("leader_epoch", "leader_end", "expected"),
        [
            (5, 25, 25),
            (5, 40, 30),
            (3, 15, 15),
            (3, 22, 20),
            (4, 25, 20),
            (2, 12, 10),
            (1, 4, 4),
        ],
    )
    def test_log_is_truncated_where_it_diverges_from_the_leader(
        self, log: Log, leader_epoch: int, leader_end: int, expected: int
    ) -> None:
        assert truncation_offset(log, leader_epoch, leader_end) == expected


class TestPieces:
    def test_small_batches_are_grouped_into_pieces_of_whole_batches(self) -> None:
        one = batch()
        data = one * 300
        found = list(whole_batches(data))
        assert [len(piece) // len(one) for piece in found] == [128, 128, 44]
        assert b"".join(found) == data

    def test_incomplete_last_batch_is_left_out(self) -> None:
        one = batch()
        assert b"".join(whole_batches(one + one[:-1])) == one
        assert list(whole_batches(one[:30])) == []
        assert list(whole_batches(b"")) == []

    def test_invalid_batch_size_ends_the_iteration(self) -> None:
        assert list(whole_batches(bytes(100))) == []
        assert list(whole_batches(b"\xff" * 100)) == []
