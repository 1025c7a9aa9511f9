"""When a follower counts as caught up."""

from __future__ import annotations

from moldau.replication.remote_replica import RemoteReplica

LAG_MS = 1000


def replica() -> RemoteReplica:
    made = RemoteReplica(2)
    made.forget(caught_up_ms=0)
    return made


def test_fetch_at_the_log_end_offset_is_caught_up_now() -> None:
    follower = replica()
    follower.fetched(10, 0, leader_end=10, now_ms=5000, broker_epoch=1)
    assert follower.last_caught_up_ms == 5000
    assert follower.is_caught_up(12, 6000, LAG_MS)
    assert not follower.is_caught_up(12, 6001, LAG_MS)


def test_replica_slightly_behind_is_caught_up_at_its_previous_fetch() -> None:
    follower = replica()
    follower.fetched(5, 0, leader_end=10, now_ms=5000, broker_epoch=1)
    assert follower.last_caught_up_ms == 0
    follower.fetched(10, 0, leader_end=20, now_ms=6000, broker_epoch=1)
    assert follower.last_caught_up_ms == 5000
    follower.fetched(15, 0, leader_end=30, now_ms=7000, broker_epoch=1)
    assert follower.last_caught_up_ms == 5000, "it has not reached what was the end at 6000"


def test_replica_with_the_whole_log_is_caught_up_without_fetching() -> None:
    follower = replica()
    follower.fetched(10, 0, leader_end=10, now_ms=5000, broker_epoch=1)
    assert follower.is_caught_up(10, 5_000_000, LAG_MS)


def test_new_epoch_of_the_same_leader_resets_the_lag_of_in_sync_replicas() -> None:
    inside, outside = replica(), replica()
    for each in (inside, outside):
        each.fetched(10, 0, leader_end=10, now_ms=5000, broker_epoch=1)
    inside.begin_epoch(9000, 12, in_sync=True)
    outside.begin_epoch(9000, 12, in_sync=False)
    assert inside.is_caught_up(12, 9500, LAG_MS)
    assert not outside.is_caught_up(12, 9500, LAG_MS)
    assert outside.log_end_offset == 10
