"""The rules of LinkedIn's Burrow that judge a partition by the course of its commits, without thresholds.

In this order; the first one that applies decides:

1. OK: the current lag is at most the allowed lag.
2. STOP: the consumer has had lag since the last commit for longer than between the first and the last commit,
   and the lag was never zero within the window (it may just have received records after a pause).
3. REWIND: a commit is below the previous one, and no later commit has reached that offset again.
4. OK: the lag was at most the allowed lag at some commit.
5. STALL: all commits have the same offset.
6. WARN: the lag never decreased from one commit to the next.
7. OK otherwise.

In rule 2 Burrow compares the times as such. Here the time without lag does not count: a consumer of a quiet
topic commits once in hours, and would otherwise be taken for stopped only after as many hours.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple


class Status(IntEnum):
    """Burrow's status words with its numbers. ERR is for groups only, the three after it for partitions."""

    NOTFOUND = 0
    OK = 1
    WARN = 2
    ERR = 3
    STOP = 4
    STALL = 5
    REWIND = 6


class Commit(NamedTuple):
    """A committed offset, when it was seen, and the lag then; None if the end offset was unknown."""

    offset: int
    time_ms: int
    lag: int | None


def partition_status(
    commits: Sequence[Commit],
    *,
    lag: int,
    recent_end_offset: int | None,
    waiting_ms: int,
    pace_ms: int,
    allowed_lag: int = 0,
) -> Status:
    """Judge a partition.

    `commits` are in the order of time; `recent_end_offset` is the lowest log end offset within the window.
    The consumer has had lag for `waiting_ms` since its last commit, and for `pace_ms` from its first to its
    last one.
    """
    if not commits or lag <= allowed_lag:
        return Status.OK
    if waiting_ms > pace_ms and not _had_no_lag(commits, recent_end_offset):
        return Status.STOP
    rewind = first_rewind(commits)
    if rewind is not None and not _is_recovered(commits, rewind):
        return Status.REWIND
    if any(each.lag is not None and each.lag <= allowed_lag for each in commits):
        return Status.OK
    if all(each.offset == commits[0].offset for each in commits):
        return Status.STALL
    return Status.OK if _lag_decreased(commits) else Status.WARN


def first_rewind(commits: Sequence[Commit]) -> int | None:
    """Return the index of the first commit below its predecessor."""
    for index in range(1, len(commits)):
        if commits[index].offset < commits[index - 1].offset:
            return index
    return None


def _is_recovered(commits: Sequence[Commit], rewind: int) -> bool:
    before = commits[rewind - 1].offset
    return any(each.offset >= before for each in commits[rewind:])


def _had_no_lag(commits: Sequence[Commit], recent_end_offset: int | None) -> bool:
    return recent_end_offset is not None and recent_end_offset <= commits[-1].offset


def _lag_decreased(commits: Sequence[Commit]) -> bool:
    lags = [each.lag for each in commits if each.lag is not None]
    return any(later < earlier for earlier, later in pairwise(lags))
