"""The vote and leader a node remembers, kept as JSON in the file `quorum-state`."""

from __future__ import annotations

from moldau.base.ids import Uuid
from moldau.protocol.schema import Message, Struct, array, int32, int64, string, uuid


class Voter(Struct):
    voter_id: int = int32("0")


class QuorumStateData(Message, versions="0-1", flexible="0+"):
    cluster_id: str = string("0")
    leader_id: int = int32("0+", default=-1)
    leader_epoch: int = int32("0+", default=-1)
    voted_id: int = int32("0+", default=-1)
    voted_directory_id: Uuid = uuid("1+")
    applied_offset: int = int64("0")
    current_voters: list[Voter] | None = array(Voter, "0", nullable="0")
