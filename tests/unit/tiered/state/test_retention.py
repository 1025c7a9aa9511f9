"""Which remote segments expire, and where the log then starts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.storage.log.leader_epochs import EpochEntry
from moldau.tiered.state.remote_log import RemoteLog
from moldau.tiered.state.retention import Limits, LocalLog, expired, interrupted
from tests.harness.tiered.segments import DELETING, FINISHED, STARTED, move, remote_log, segment

UNLIMITED = Limits(-1, -1)
EPOCHS = (EpochEntry(0, 0),)


def three() -> RemoteLog:
    return remote_log(*(segment(n, n * 10, n * 10 + 9, max_timestamp_ms=n * 1000) for n in range(3)))


def log(start: int = 0, only_local_bytes: int = 0) -> LocalLog:
    return LocalLog((EpochEntry(0, start),), start, 100, 100, only_local_bytes)


def starts(
    remote: RemoteLog, local: LocalLog, limits: Limits, now_ms: int = 0
) -> tuple[list[int], int | None]:
    found = expired(remote, local, limits, now_ms)
    return [each.start_offset for each in found.segments], found.log_start_offset


def test_nothing_expires_without_limits() -> None:
    assert starts(three(), log(), UNLIMITED, 10**12) == ([], None)


def test_old_segments_expire() -> None:
    assert starts(three(), log(), Limits(500, -1), 1501) == ([0, 10], 20)
    assert starts(three(), log(), Limits(500, -1), 500) == ([], None)


def test_the_size_counts_both_tiers() -> None:
    assert starts(three(), log(only_local_bytes=100), Limits(-1, 300)) == ([0], 10)
    assert starts(three(), log(only_local_bytes=99), Limits(-1, 300)) == ([], None)
    assert starts(three(), log(only_local_bytes=1000), Limits(-1, 0)) == ([0, 10, 20], 30)


def test_nothing_expires_past_the_high_watermark() -> None:
    for high_watermark, expected in ((9, []), (10, [0]), (25, [0, 10])):
        local = log()._replace(high_watermark=high_watermark)
        assert starts(three(), local, Limits(-1, 0))[0] == expected


def test_segments_before_the_log_start_are_deleted() -> None:
    assert starts(three(), log(20), UNLIMITED) == ([0, 10], None)
    assert starts(three(), log(19), UNLIMITED) == ([0], None)


def test_segments_of_earlier_epochs_are_deleted() -> None:
    remote = remote_log(segment(1, 0, 50, [(1, 0)]), segment(2, 20, 60, [(4, 20)]))
    local = LocalLog((EpochEntry(4, 20),), 20, 100, 100, 0)
    assert starts(remote, local, UNLIMITED) == ([0], None)


def test_segments_of_another_history_stay_until_their_epochs_are_gone() -> None:
    remote = remote_log(segment(1, 10, 60, [(2, 10)]))
    local = LocalLog((EpochEntry(1, 0), EpochEntry(3, 30)), 0, 100, 100, 0)
    assert starts(remote, local, Limits(0, 0), 10**12) == ([], None)


def test_interrupted_copies_and_deletions_are_found() -> None:
    remote = RemoteLog()
    started, deleting = segment(1, 0, 9, event_timestamp_ms=100), segment(2, 10, 19)
    move(remote, started, STARTED)
    move(remote, deleting, STARTED, FINISHED, DELETING)

    def found(now_ms: int, *in_progress: int) -> list[int]:
        ids = frozenset(segment(number, 0, 0).id for number in in_progress)
        left = interrupted(remote, in_progress=ids, now_ms=now_ms, grace_ms=1000)
        return [each.start_offset for each in left]

    assert found(1099) == [10]
    assert found(1100) == [0, 10]
    assert found(1100, 1) == [10]


@given(st.lists(st.integers(1, 200), min_size=1, max_size=20), st.integers(0, 3000), st.integers(0, 500))
def test_retention_keeps_as_much_as_the_limit_allows(sizes: list[int], limit: int, local_bytes: int) -> None:
    items = [segment(n, n * 10, n * 10 + 9, size=size) for n, size in enumerate(sizes)]
    local = LocalLog(EPOCHS, 0, 1000, 1000, local_bytes)
    found = expired(remote_log(*items), local, Limits(-1, limit), 0)
    gone = [each.start_offset // 10 for each in found.segments]
    # The oldest ones, without gaps.
    assert gone == list(range(len(gone)))
    kept = sum(sizes[len(gone) :]) + local_bytes
    assert kept >= min(limit, sum(sizes) + local_bytes)
    if len(gone) < len(sizes):
        assert kept - sizes[len(gone)] < limit
    assert found.log_start_offset == (len(gone) * 10 if gone else None)
