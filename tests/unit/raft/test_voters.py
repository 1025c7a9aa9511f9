"""The voter set and its history."""

from __future__ import annotations

from moldau.raft.voters import VoterHistory, VoterSet
from tests.harness.worlds.raft import voter


def test_truncation_reverts_the_voter_set() -> None:
    static, one, two = (VoterSet.of(voter(each) for each in ids) for ids in ([1], [1, 2], [1, 2, 3]))
    history = VoterHistory(static)
    assert (history.voters, history.voters_offset, history.kraft_version) == (static, None, 0)
    history.add(5, kraft_version=1, voters=one)
    history.add(9, voters=two)
    assert (history.voters, history.voters_offset, history.previous_voters) == (two, 9, one)
    assert [history.voters_at(offset) for offset in (4, 5, 8, 9)] == [static, one, one, two]
    assert (history.kraft_version_at(4), history.kraft_version_at(7)) == (0, 1)
    history.truncate(9)
    assert (history.voters, history.voters_offset) == (one, 5)
    history.truncate(5)
    assert (history.voters, history.kraft_version) == (static, 0)


def test_entries_covered_by_a_snapshot_are_discarded() -> None:
    history = VoterHistory()
    sets = [VoterSet.of(voter(each) for each in range(count)) for count in range(1, 4)]
    for offset, voters in zip((-1, 5, 9), sets, strict=True):
        history.add(offset, kraft_version=1, voters=voters)
    history.discard_before(7)
    assert [history.voters_at(offset) for offset in (4, 5, 7, 9)] == [VoterSet(), sets[1], sets[1], sets[2]]
    assert history.kraft_version == 1
