"""When a follower counts as caught up."""

from __future__ import annotations

from moldau.replication.remote_replica import RemoteReplica

LAG_MS = 1000


def replica() -> RemoteReplica:
    made = RemoteReplica(2)
    made.forget(caught_up_ms=0)
    return made


def test_one_that_asks_for_the_end_is_caught_up_now() -> None:
    follower = replica()
    follower.fetched(10, 0, leader_end=10, now_ms=5000, broker_epoch=1)
    assert follower.last_caught_up_ms == 5000
    assert follower.is_caught_up(12, 6000, LAG_MS)
    assert not follower.is_caught_up(12, 6001, LAG_MS)


def test_one_that_is_always_a_little_behind_is_caught_up_with_its_last_fetch() -> None:
    follower = replica()
    follower.fetched(5, 0, leader_end=10, now_ms=5000, broker_epoch=1)
    assert follower.last_caught_up_ms == 0
    follower.fetched(10, 0, leader_end=20, now_ms=6000, broker_epoch=1)
    assert follower.last_caught_up_ms == 5000
    follower.fetched(15, 0, leader_end=30, now_ms=7000, broker_epoch=1)
    assert follower.last_caught_up_ms == 5000, "it has not reached what was the end at 6000"


def test_one_that_has_everything_is_caught_up_however_long_ago_it_asked() -> None:
    follower = replica()
    follower.fetched(10, 0, leader_end=10, now_ms=5000, broker_epoch=1)
    assert follower.is_caught_up(10, 5_000_000, LAG_MS)


def test_a_new_epoch_of_the_same_leader_gives_those_in_sync_a_new_start() -> None:
    inside, outside = replica(), replica()
    for each in (inside, outside):
        each.fetched(10, 0, leader_end=10, now_ms=5000, broker_epoch=1)
    inside.begin_epoch(9000, 12, in_sync=True)
    outside.begin_epoch(9000, 12, in_sync=False)
    assert inside.is_caught_up(12, 9500, LAG_MS)
    assert not outside.is_caught_up(12, 9500, LAG_MS)
    assert outside.log_end_offset == 10
