"""Control batches, byte for byte as Apache Kafka 4.3 writes them."""

from __future__ import annotations

from pathlib import Path

from moldau.base.ids import ZERO_UUID
from moldau.quorum.batches import control_batch, leader_change
from moldau.raft.voters import Voter, VoterEndpoint, VoterSet
from tests.unit.metadata.builders import uid

DATA = Path(__file__).parent / "data"


class TestControlRecords:
    def test_voters_record_round_trips(self) -> None:
        voters = VoterSet.of(
            [Voter(2, uid(2), (VoterEndpoint("C", "b", 2),)), Voter(1, uid(1), (VoterEndpoint("C", "a", 1),))]
        )
        assert voters.ids == [1, 2]
        assert VoterSet.from_record(voters.to_record()) == voters
        moved = voters.with_voter(Voter(2, uid(2), (VoterEndpoint("C", "elsewhere", 2),)))
        assert moved.get(2) == Voter(2, uid(2), (VoterEndpoint("C", "elsewhere", 2),))
        assert voters.get(3) is None
        assert Voter(1).directory_id == ZERO_UUID

    def test_leader_change_batch_matches_apache_kafka(self) -> None:
        batch = control_batch([leader_change(1, [1], [1])], 0, 1, 1794755766549)
        theirs = (DATA / "apache-static" / "00000000000000000000.log").read_bytes()[: len(batch)]
        assert bytes(batch) == theirs
