"""The initial state after a restart, and who may become a candidate."""

from __future__ import annotations

import pytest

from moldau.raft.types import (
    ElectionState,
    Role,
)
from tests.unit.raft.builders import (
    NOW,
    log_of,
    node,
    vote_request,
)


@pytest.mark.parametrize(
    ("stored", "role", "epoch"),
    [
        (ElectionState(), Role.UNATTACHED, 2),
        (ElectionState(-1, 1, 3), Role.UNATTACHED, 2),
        (ElectionState(1, 2), Role.RESIGNED, 2),
        (ElectionState(-1, 4, 1), Role.CANDIDATE, 4),
        (ElectionState(3, 4), Role.FOLLOWER, 4),
        (ElectionState(9, 4), Role.UNATTACHED, 4),
        (ElectionState(-1, 4, 3), Role.UNATTACHED, 4),
    ],
)
def test_initial_role_follows_from_quorum_state_and_log(
    stored: ElectionState, role: Role, epoch: int
) -> None:
    raft = node(log_of(1, 2), stored)
    assert (raft.quorum.role, raft.quorum.epoch) == (role, epoch)
    persist = raft.take_ready().persist
    expected = stored if stored.leader_epoch >= 2 else ElectionState(-1, 2)
    found = persist or stored
    assert (found.leader_id, found.leader_epoch, found.voted_id) == (
        expected.leader_id,
        expected.leader_epoch,
        expected.voted_id,
    )


@pytest.mark.parametrize(("voters", "can_vote"), [((2, 3), True), ((1, 2, 3), False)])
def test_former_voter_does_not_remain_a_candidate_after_a_restart(
    voters: tuple[int, ...], can_vote: bool
) -> None:
    """It voted for itself before the restart and may have been elected, so it must not vote for another
    node."""
    raft = node(stored=ElectionState(-1, 4, 1), voters=voters, can_vote=can_vote)
    assert raft.quorum.role is Role.UNATTACHED
    raft.tick(NOW + 60_000)
    assert raft.quorum.role is Role.UNATTACHED
    response = raft.step(vote_request(4, candidate=2, last=(9, 3)), 2, NOW)
    assert not response.topics[0].partitions[0].vote_granted


def test_broker_never_becomes_a_candidate() -> None:
    broker = node(stored=ElectionState(2, 3), can_vote=False)
    broker.tick(NOW + 60_000)
    broker.leader_exited(NOW + 60_000)
    assert (broker.quorum.role, broker.quorum.is_voter) == (Role.FOLLOWER, False)
