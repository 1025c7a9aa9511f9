"""Handing out, taking back and moving on: the rules of a share partition one by one."""

from __future__ import annotations

import itertools
import random

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.share.acknowledgement import Acknowledgement, acknowledge, release
from moldau.share.acquisition import Acquired, AcquireRequest, FetchedBatch, FetchedRecords, acquire
from moldau.share.partition_state import ShareLimits, SharePartitionState
from moldau.share.state_batches import StateBatch, combine


class World:
    """Batches of ten records; what is said is stored at once."""

    def __init__(self, batches: int = 4, limits: ShareLimits | None = None) -> None:
        self.now = 0
        self.log = [FetchedBatch(10 * n, 10 * n + 9, 100) for n in range(batches)]
        self.share = SharePartitionState(lambda: limits or ShareLimits(), lambda: self.now)
        self.share.load(0, 1, [])

    def fetch(self, member: str, most: int = 500, batch_size: int = 500, **options: bool) -> list[Acquired]:
        offset = self.share.next_fetch_offset()
        found = [batch for batch in self.log if batch.last >= offset]
        return acquire(
            self.share, AcquireRequest(member, most, batch_size, **options), FetchedRecords(offset, found)
        )

    def say(self, member: str, first: int, last: int, *kinds: int) -> None:
        transition = acknowledge(self.share, member, [Acknowledgement(first, last, kinds)])
        self.share.complete(transition, persisted=True)


def test_batches_are_cut_where_the_log_has_batches() -> None:
    assert World().fetch("a", batch_size=15) == [Acquired(0, 19, 1), Acquired(20, 39, 1)]
    assert World().fetch("a", most=5) == [Acquired(0, 9, 1)]
    assert World().fetch("a", most=5, strict=True) == [Acquired(0, 4, 1)]


def test_what_others_hold_is_passed_over() -> None:
    world = World()
    assert world.fetch("a", most=10) == [Acquired(0, 9, 1)]
    assert world.fetch("b", most=10) == [Acquired(10, 19, 1)]
    world.share.complete(release(world.share, "a"), persisted=True)
    assert world.fetch("c") == [Acquired(0, 9, 2), Acquired(20, 39, 1)]


def test_a_strict_member_leaves_the_rest_of_a_batch_to_others() -> None:
    world = World()
    assert world.fetch("a", most=4, strict=True) == [Acquired(0, 3, 1)]
    assert world.fetch("b", most=3, strict=True) == [Acquired(4, 6, 1)]
    world.say("a", 0, 3, 1)
    assert world.share.start_offset == 4


def test_the_start_moves_over_what_is_done_with_and_no_further() -> None:
    world = World()
    world.fetch("a")
    world.say("a", 3, 39, 1)
    assert (world.share.start_offset, world.share.complete_count) == (0, 37)
    world.say("a", 0, 1, 1)
    assert (world.share.start_offset, world.share.complete_count) == (2, 37)
    world.say("a", 2, 2, 3)
    assert (world.share.start_offset, world.share.end_offset, len(world.share.in_flight)) == (40, 40, 0)


def test_nothing_new_goes_out_beyond_the_limit_of_locks() -> None:
    world = World(limits=ShareLimits(record_locks=15))
    assert world.fetch("a") == [Acquired(0, 19, 1)]
    assert not world.share.can_acquire()
    world.say("a", 5, 5, 2)
    assert world.share.can_acquire()
    assert world.fetch("b") == [Acquired(5, 5, 2)]


def test_records_that_failed_often_go_out_in_smaller_groups_and_at_last_alone() -> None:
    world = World(1)
    sizes = []
    while given := world.fetch("a"):
        sizes.append(sum(each.last - each.first + 1 for each in given))
        world.share.complete(release(world.share, "a"), persisted=True)
    assert sizes[:4] == [10, 10, 10, 5]
    assert sizes[-1] == 1
    assert world.share.start_offset == 10


def test_a_lock_that_ran_out_while_an_acknowledgement_was_not_stored() -> None:
    world = World(1)
    world.fetch("a")
    transition = acknowledge(world.share, "a", [Acknowledgement(0, 9, [1])])
    world.now = 30_000
    assert world.share.expire() == []
    world.share.complete(transition, persisted=False)
    assert world.fetch("b") == [Acquired(0, 9, 2)]


@pytest.mark.parametrize(
    ("member", "first", "last", "kind", "code"),
    [
        ("b", 0, 9, 1, ErrorCode.INVALID_RECORD_STATE),
        ("a", 0, 40, 1, ErrorCode.INVALID_REQUEST),
        ("a", 10, 10, 1, ErrorCode.INVALID_REQUEST),
        ("a", 0, 9, 7, ErrorCode.INVALID_REQUEST),
    ],
)
def test_refusals_change_nothing(member: str, first: int, last: int, kind: int, code: ErrorCode) -> None:
    world = World(1)
    world.fetch("a")
    with pytest.raises(KafkaError) as refused:
        acknowledge(world.share, member, [Acknowledgement(0, 3, [2]), Acknowledgement(first, last, [kind])])
    assert refused.value.code is code
    world.say("a", 0, 9, 1)
    assert world.share.start_offset == 10


def test_renewal_can_be_switched_off() -> None:
    world = World(1, ShareLimits(renewal=False))
    world.fetch("a")
    with pytest.raises(KafkaError) as refused:
        world.say("a", 0, 9, 4)
    assert refused.value.code is ErrorCode.INVALID_RECORD_STATE


def test_gaps_in_what_was_stored_are_handed_out() -> None:
    world = World()
    world.share.load(0, 1, [StateBatch(5, 9, 2, 1), StateBatch(20, 24, 0, 1)])
    given = world.fetch("a")
    taken = [offset for first, last, _ in given for offset in range(first, last + 1)]
    assert taken == [*range(5), *range(10, 40)]
    world.say("a", 10, 39, 1)
    assert world.share.start_offset == 0
    world.say("a", 0, 4, 1)
    assert world.share.start_offset == 40


def test_what_the_log_has_lost_is_done_with() -> None:
    world = World()
    world.fetch("a", most=10)
    world.share.log_start_moved(15)
    world.log = world.log[1:]
    assert world.share.start_offset == 15
    # What is before the start needs no acknowledgement, and harms nobody.
    world.say("a", 0, 9, 1)
    given = world.fetch("b")
    assert given[0].first == 15


def test_records_of_aborted_transactions_are_left_out() -> None:
    world = World()
    world.log = [
        FetchedBatch(0, 4, 100, producer_id=7, transactional=True),
        FetchedBatch(5, 9, 100, producer_id=8, transactional=True),
        FetchedBatch(10, 10, 100, producer_id=7, transactional=True, aborts=True),
        FetchedBatch(11, 14, 100, producer_id=7, transactional=True),
    ]
    fetched = FetchedRecords(0, world.log, aborted=[(7, 0)])
    given = acquire(world.share, AcquireRequest("a", 500, 500), fetched)
    assert given == [Acquired(5, 14, 1)]
    world.say("a", 5, 14, 1)
    assert world.share.start_offset == 15


def test_stored_runs_are_merged_like_records_one_by_one() -> None:
    chance = random.Random(4)
    for _ in range(2000):
        runs = []
        for _ in range(chance.randrange(1, 9)):
            first = chance.randrange(0, 30)
            runs.append(
                StateBatch(
                    first, first + chance.randrange(0, 9), chance.choice((0, 2, 4)), chance.randrange(1, 4)
                )
            )
        start = chance.choice((-1, 0, 7, 15))
        expected: dict[int, tuple[int, int]] = {}
        for run in runs:
            for offset in range(max(run.first_offset, start), run.last_offset + 1):
                age = (run.delivery_count, run.state)
                expected[offset] = max(expected.get(offset, age), age)
        split = chance.randrange(0, len(runs) + 1)
        found = combine(combine((), runs[:split], start), runs[split:], start)
        covered = {
            offset: (run.delivery_count, run.state)
            for run in found
            for offset in range(run.first_offset, run.last_offset + 1)
        }
        assert covered == expected
        for before, after in itertools.pairwise(found):
            assert before.last_offset < after.first_offset
            touching = before.last_offset + 1 == after.first_offset
            assert not touching or before[2:] != after[2:]
