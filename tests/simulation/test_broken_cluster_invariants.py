"""Deliberate violations of each invariant of a cluster are detected within a few seeds.

The number of seeds is asserted; it was measured, with a margin for simulations that change
with the code.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest

from moldau.controller.partitions.change import PartitionChange
from moldau.metadata.loader import MetadataLoader
from moldau.raft import election, replication
from moldau.raft.states import Leader, Votes
from moldau.replication.leadership import Leadership
from moldau.replication.partition import Partition
from moldau.server.coordinators.partition_log import PartitionLog
from moldau.server.coordinators.txn_markers import TxnMarkerWriter
from moldau.server.dispatch.context import RequestContext
from moldau.statemachine.runtime import Runtime
from tests.simulation.cluster import run
from tests.simulation.quorum.world import simulate as simulate_quorum

Patch = pytest.MonkeyPatch


def seeds_needed(run_seed: Callable[[int], Any], expected: str, limit: int, first: int = 0) -> int:
    """Return the number of simulations until this invariant fails; others may fail before."""
    for seed in range(first, first + limit):
        try:
            run_seed(seed)
        except Exception as error:
            if re.search(expected, f"{type(error).__name__}: {error}"):
                return seed - first + 1
    raise AssertionError(f"no invariant failed within {limit} seeds")


# The metadata quorum: Raft state machines only.


def _voting_twice(patch: Patch) -> None:
    patch.setattr(election, "grants_vote", lambda state, candidate, *, up_to_date, pre_vote: up_to_date)


def _won_without_majority(patch: Patch) -> None:
    patch.setattr(Votes, "is_won", property(lambda self: bool(self.granting)))


def _votes_for_shorter_logs(patch: Patch) -> None:
    right = election.grants_vote
    patch.setattr(
        election,
        "grants_vote",
        lambda state, candidate, *, up_to_date, pre_vote: right(
            state, candidate, up_to_date=True, pre_vote=pre_vote
        ),
    )


def _committed_without_majority(patch: Patch) -> None:
    def commit(self: Leader) -> bool:
        reached = max(progress.end_offset for progress in self.voters.values())
        if reached <= max(self.epoch_start_offset, self.high_watermark):
            return False
        self.high_watermark = reached
        return True

    patch.setattr(Leader, "_advance_high_watermark", commit)


def _undetected_divergence(patch: Patch) -> None:
    patch.setattr(replication, "_divergence", lambda log, requested: None)


def _high_watermark_before_it_is_known(patch: Patch) -> None:
    """A new leader waits neither for a record of its own epoch nor for the log end offsets of all voters."""

    def commit(self: Leader) -> bool:
        ends = sorted((progress.end_offset for progress in self.voters.values()), reverse=True)
        self.high_watermark = max(0, ends[len(ends) // 2])
        return True

    patch.setattr(Leader, "_advance_high_watermark", commit)


@pytest.mark.parametrize(
    ("break_it", "expected", "limit"),
    [
        (_voting_twice, "one vote per epoch|election safety", 10),
        (_won_without_majority, "election safety|leader completeness", 10),
        (_votes_for_shorter_logs, "leader completeness|RaftSafetyViolation", 30),
        (_committed_without_majority, "committed on a majority", 10),
        (_undetected_divergence, "log matching|state machine safety|on a majority", 30),
        (_high_watermark_before_it_is_known, "the high watermark never decreases", 60),
    ],
)
def test_violated_quorum_invariants_are_detected(
    monkeypatch: Patch,
    break_it: Callable[[Patch], None],
    expected: str,
    limit: int,
    record_property: Callable[[str, object], None],
) -> None:
    break_it(monkeypatch)
    record_property("seeds needed", seeds_needed(simulate_quorum, expected, limit))


# Partitions, coordinators and metadata: whole clusters.


def _leader_outside_the_isr(patch: Patch) -> None:
    patch.setattr(PartitionChange, "_can_lead_cleanly", lambda self, replica: self._may_lead(replica))


def _high_watermark_is_the_own_log_end(patch: Patch) -> None:
    patch.setattr(Leadership, "committed_end", lambda self, log: log.log_end_offset)


def _acks_all_answered_at_once(patch: Patch) -> None:
    patch.setattr(Partition, "committed", lambda self, offset: True)


def _isr_grown_too_early(patch: Patch) -> None:
    def grow(self: Leadership, replica: Any, log: Any) -> Any:
        registration = self.registration
        if self.pending is not None or replica.id in registration.isr:
            return None
        return self._propose((*registration.isr, replica.id), counted=registration.isr)

    patch.setattr(Leadership, "proposed_growth", grow)


def _new_leaders_truncate_to_their_high_watermark(patch: Patch) -> None:
    """As in Kafka before leader epochs: a follower's high watermark is often behind the committed offset."""
    right = Partition.take_role

    def take_role(self: Partition, registration: Any, *more: Any) -> Any:
        if registration.leader == self._broker.id and not self.is_leader and self.log is not None:
            self.log.truncate_to(self.log.high_watermark)
        return right(self, registration, *more)

    patch.setattr(Partition, "take_role", take_role)


def _markers_lost(patch: Patch) -> None:
    right, count = TxnMarkerWriter._append, itertools.count(1)
    patch.setattr(TxnMarkerWriter, "_append", lambda *what: right(*what) if next(count) % 5 else None)


def _commits_not_waited_for(patch: Patch) -> None:
    """Coordinators respond before their records are committed; the controller still waits."""
    right = Runtime._until_committed

    async def at_once(self: Runtime[Any], offset: int) -> None:
        if not isinstance(self._log, PartitionLog):
            await right(self, offset)

    patch.setattr(Runtime, "_until_committed", at_once)


def _metadata_records_dropped(patch: Patch) -> None:
    right, count = MetadataLoader.replay, itertools.count(1)

    def replay(self: MetadataLoader, records: Any, base_offset: int, epoch: int) -> None:
        right(self, records if next(count) % 40 else records[:-1], base_offset, epoch)

    patch.setattr(MetadataLoader, "replay", replay)


_LOST = "acknowledged records are readable|what was read stays|logs agree|has everything committed"


@pytest.mark.parametrize(
    ("break_it", "faults", "expected", "limit"),
    [
        # Such a leader has lost records, or can commit none, and its clients get no response.
        (
            _leader_outside_the_isr,
            ("isolate", "full disk", "kill"),
            f"{_LOST}|every client gets its answer",
            24,
        ),
        (_high_watermark_is_the_own_log_end, (), "ISR members have everything committed", 4),
        (_acks_all_answered_at_once, (), _LOST, 12),
        (_isr_grown_too_early, ("kill", "isolate"), "ISR members have everything committed", 24),
        (_new_leaders_truncate_to_their_high_watermark, ("kill", "isolate", "elect"), _LOST, 6),
        (_markers_lost, (), "transactions are atomic", 6),
        (_commits_not_waited_for, ("isolate",), "committed offsets never go back", 30),
        (_metadata_records_dropped, (), "metadata images agree", 4),
    ],
)
def test_violated_cluster_invariants_are_detected(
    monkeypatch: Patch,
    break_it: Callable[[Patch], None],
    faults: tuple[str, ...],
    expected: str,
    limit: int,
    record_property: Callable[[str, object], None],
) -> None:
    break_it(monkeypatch)
    # About one simulation in 150 shows an ISR that has grown too early; these are near one that does.
    first = 220 if break_it is _isr_grown_too_early else 0
    needed = seeds_needed(
        lambda seed: run.run_seed(seed, faults=faults, secured=False, streams=False), expected, limit, first
    )
    record_property("seeds needed", needed)


def test_intruder_that_is_not_denied_is_detected(monkeypatch: Patch) -> None:
    monkeypatch.setattr(RequestContext, "allows", lambda *arguments, **options: True)
    with pytest.raises(AssertionError, match="an intruder"):
        run.run_seed(0, secured=True)
