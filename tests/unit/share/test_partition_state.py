"""The rules of share partitions (KIP-932): acquiring, acknowledging and advancing the start offset."""

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
    """A log with batches of ten records; acknowledgements are persisted immediately."""

    def __init__(self, batches: int = 4, limits: ShareLimits | None = None) -> None:
        self.now = 0
        self.log = [FetchedBatch(10 * n, 10 * n + 9, 100) for n in range(batches)]
        self.share = SharePartitionState(lambda: limits or ShareLimits(), lambda: self.now)
        self.share.load(0, 1, [])

    def fetch(
        self, member: str, max_records: int = 500, batch_size: int = 500, **options: bool
    ) -> list[Acquired]:
        offset = self.share.next_fetch_offset()
        found = [batch for batch in self.log if batch.last >= offset]
        return acquire(
            self.share,
            AcquireRequest(member, max_records, batch_size, **options),
            FetchedRecords(offset, found),
        )

    def acknowledge(self, member: str, first: int, last: int, *types: int) -> None:
        transition = acknowledge(self.share, member, [Acknowledgement(first, last, types)])
        self.share.complete(transition, persisted=True)


def test_acquired_batches_end_with_batches_of_the_log() -> None:
    assert World().fetch("a", batch_size=15) == [Acquired(0, 19, 1), Acquired(20, 39, 1)]
    assert World().fetch("a", max_records=5) == [Acquired(0, 9, 1)]
    assert World().fetch("a", max_records=5, strict=True) == [Acquired(0, 4, 1)]


def test_records_acquired_by_others_are_skipped() -> None:
    world = World()
    assert world.fetch("a", max_records=10) == [Acquired(0, 9, 1)]
    assert world.fetch("b", max_records=10) == [Acquired(10, 19, 1)]
    world.share.complete(release(world.share, "a"), persisted=True)
    assert world.fetch("c") == [Acquired(0, 9, 2), Acquired(20, 39, 1)]


def test_record_limit_mode_leaves_the_rest_of_a_batch_to_others() -> None:
    world = World()
    assert world.fetch("a", max_records=4, strict=True) == [Acquired(0, 3, 1)]
    assert world.fetch("b", max_records=3, strict=True) == [Acquired(4, 6, 1)]
    world.acknowledge("a", 0, 3, 1)
    assert world.share.start_offset == 4


def test_the_start_offset_advances_over_complete_records_only() -> None:
    world = World()
    world.fetch("a")
    world.acknowledge("a", 3, 39, 1)
    assert (world.share.start_offset, world.share.complete_count) == (0, 37)
    world.acknowledge("a", 0, 1, 1)
    assert (world.share.start_offset, world.share.complete_count) == (2, 37)
    world.acknowledge("a", 2, 2, 3)
    assert (world.share.start_offset, world.share.end_offset, len(world.share.in_flight)) == (40, 40, 0)


def test_no_new_records_are_acquired_above_max_record_locks() -> None:
    world = World(limits=ShareLimits(record_locks=15))
    assert world.fetch("a") == [Acquired(0, 19, 1)]
    assert not world.share.can_acquire()
    world.acknowledge("a", 5, 5, 2)
    assert world.share.can_acquire()
    assert world.fetch("b") == [Acquired(5, 5, 2)]


def test_compacted_records_are_archived_at_max_record_locks() -> None:
    world = World(limits=ShareLimits(record_locks=10))
    assert world.fetch("a") == [Acquired(0, 9, 1)]
    world.share.complete(release(world.share, "a"), persisted=True)
    del world.log[0]
    assert world.fetch("b") == []
    assert (world.share.start_offset, len(world.share.in_flight)) == (10, 0)
    assert world.fetch("b") == [Acquired(10, 19, 1)]


def test_records_with_many_deliveries_are_acquired_in_smaller_groups_and_finally_alone() -> None:
    world = World(1)
    sizes = []
    while given := world.fetch("a"):
        sizes.append(sum(each.last - each.first + 1 for each in given))
        world.share.complete(release(world.share, "a"), persisted=True)
    assert sizes[:4] == [10, 10, 10, 5]
    assert sizes[-1] == 1
    assert world.share.start_offset == 10


def test_a_lock_that_expires_before_a_failed_write_releases_its_records() -> None:
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
def test_refused_acknowledgements_change_nothing(
    member: str, first: int, last: int, kind: int, code: ErrorCode
) -> None:
    world = World(1)
    world.fetch("a")
    with pytest.raises(KafkaError) as refused:
        acknowledge(world.share, member, [Acknowledgement(0, 3, [2]), Acknowledgement(first, last, [kind])])
    assert refused.value.code is code
    world.acknowledge("a", 0, 9, 1)
    assert world.share.start_offset == 10


def test_renewal_can_be_disabled() -> None:
    world = World(1, ShareLimits(renewal=False))
    world.fetch("a")
    with pytest.raises(KafkaError) as refused:
        world.acknowledge("a", 0, 9, 4)
    assert refused.value.code is ErrorCode.INVALID_RECORD_STATE


def test_gaps_in_the_persisted_state_are_acquired() -> None:
    world = World()
    world.share.load(0, 1, [StateBatch(5, 9, 2, 1), StateBatch(20, 24, 0, 1)])
    given = world.fetch("a")
    taken = [offset for first, last, _ in given for offset in range(first, last + 1)]
    assert taken == [*range(5), *range(10, 40)]
    world.acknowledge("a", 10, 39, 1)
    assert world.share.start_offset == 0
    world.acknowledge("a", 0, 4, 1)
    assert world.share.start_offset == 40


def test_records_before_the_log_start_offset_are_complete() -> None:
    world = World()
    world.fetch("a", max_records=10)
    world.share.log_start_moved(15)
    world.log = world.log[1:]
    assert world.share.start_offset == 15
    # Acknowledging records before the start offset has no effect.
    world.acknowledge("a", 0, 9, 1)
    given = world.fetch("b")
    assert given[0].first == 15


def test_records_of_aborted_transactions_are_archived() -> None:
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
    world.acknowledge("a", 5, 14, 1)
    assert world.share.start_offset == 15


def test_combined_state_batches_equal_a_combination_offset_by_offset() -> None:
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
