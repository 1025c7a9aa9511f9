"""Waiting for commits, where logs are cut, throttles, and pieces of an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.clock import ManualClock
from moldau.base.errors import ErrorCode
from moldau.base.ids import TopicPartition
from moldau.replication.catching_up import pieces
from moldau.replication.commits import Commits
from moldau.replication.following import truncation_offset
from moldau.replication.throttles import Throttle, throttled_partitions
from moldau.storage.disk.disk import PosixDisk
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from tests.harness.wire.batches import batch


class TestCommits:
    def test_those_who_wait_are_told_in_order_of_their_offsets(self) -> None:
        commits, told = Commits(), []
        for offset in (30, 10, 20, 10):
            commits.add(offset, lambda code, offset=offset: told.append((offset, code)))
        commits.reached(9, ErrorCode.NONE)
        assert told == []
        commits.reached(25, ErrorCode.NONE)
        assert [offset for offset, _ in told] == [10, 10, 20]
        commits.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert told[-1] == (30, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        commits.reached(100, ErrorCode.NONE)
        assert len(told) == 4


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
    def test_logs_are_cut_where_they_part_from_the_leaders(
        self, log: Log, leader_epoch: int, leader_end: int, expected: int
    ) -> None:
        assert truncation_offset(log, leader_epoch, leader_end) == expected


class TestThrottle:
    def test_the_rate_is_measured_over_the_windows(self) -> None:
        clock = ManualClock()
        throttle = Throttle(clock, lambda: 100.0, lambda: (3, 1))
        assert not throttle.is_exceeded()
        throttle.record(100)
        assert not throttle.is_exceeded()
        throttle.record(150)
        assert throttle.is_exceeded()
        clock.advance(2000)
        assert throttle.is_exceeded()
        clock.advance(600)
        assert not throttle.is_exceeded(), "250 bytes in 2.6 seconds"
        clock.advance(10_000)
        throttle.record(101)
        assert throttle.is_exceeded(), "what was sent long ago does not count any more"

    def test_only_the_named_replicas_of_this_broker_are_covered(self) -> None:
        throttle = Throttle(ManualClock(), lambda: 1.0, lambda: (3, 1))
        throttle.set_replicas("some", "0:1, 1:2,2:1", 1)
        throttle.set_replicas("all", "*", 1)
        throttle.set_replicas("others", "0:2", 1)
        assert [throttle.covers("some", index) for index in (0, 1, 2)] == [True, False, True]
        assert throttle.covers("all", 7)
        assert not throttle.covers("others", 0)
        throttle.set_replicas("all", None, 1)
        assert not throttle.covers("all", 7)

    def test_all_is_told_apart_from_none(self) -> None:
        assert throttled_partitions("*", 1) is None
        assert throttled_partitions("", 1) == frozenset()


class TestPieces:
    def test_many_small_batches_come_in_pieces_of_whole_ones(self) -> None:
        one = batch()
        data = one * 300
        found = list(pieces(data))
        assert [len(piece) // len(one) for piece in found] == [128, 128, 44]
        assert b"".join(found) == data

    def test_what_is_behind_the_last_whole_batch_is_left_out(self) -> None:
        one = batch()
        assert b"".join(pieces(one + one[:-1])) == one
        assert list(pieces(one[:30])) == []
        assert list(pieces(b"")) == []

    def test_nonsense_ends_it(self) -> None:
        assert list(pieces(bytes(100))) == []
        assert list(pieces(b"\xff" * 100)) == []
