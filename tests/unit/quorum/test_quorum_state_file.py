"""The file `quorum-state`, byte for byte as Apache Kafka 4.3 writes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.quorum_state_file import read_quorum_state, write_quorum_state
from moldau.raft.types import ElectionState
from moldau.raft.voters import DYNAMIC, STATIC, Voter, VoterSet
from moldau.storage.disk.disk import PosixDisk

DATA = Path(__file__).parent / "data"


DISK = PosixDisk()


class TestQuorumState:
    def test_version_1_of_a_dynamic_quorum_matches_apache_kafka(self, tmp_path: Path) -> None:
        path = str(tmp_path / "quorum-state")
        state = ElectionState(leader_id=1, leader_epoch=1)
        write_quorum_state(DISK, path, state, kraft_version=DYNAMIC, voters=VoterSet())
        assert Path(path).read_bytes() == (DATA / "apache-dynamic" / "quorum-state").read_bytes()
        assert read_quorum_state(DISK, path) == state

    def test_version_0_of_a_static_quorum_matches_apache_kafka(self, tmp_path: Path) -> None:
        path = str(tmp_path / "quorum-state")
        state = ElectionState(leader_id=1, leader_epoch=1)
        voters = VoterSet.of([Voter(1)])
        write_quorum_state(DISK, path, state, kraft_version=STATIC, voters=voters)
        assert Path(path).read_bytes() == (DATA / "apache-static" / "quorum-state").read_bytes()
        assert read_quorum_state(DISK, path) == state

    def test_missing_file_is_none(self, tmp_path: Path) -> None:
        assert read_quorum_state(DISK, str(tmp_path / "quorum-state")) is None

    @pytest.mark.parametrize(
        "content", [b"", b"{", b"[]", b"{}", b'{"data_version":7}', json.dumps({"data_version": 1}).encode()]
    )
    def test_damaged_file_is_rejected(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "quorum-state"
        path.write_bytes(content)
        with pytest.raises(UnusableMetadata, match="quorum-state is damaged"):
            read_quorum_state(DISK, str(path))
