"""What the rules of the quorum must know of a node's configuration."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.base.ids import ZERO_UUID, DirectoryId
from moldau.raft.voters import DYNAMIC, STATIC, Voter, VoterEndpoint


@dataclass(frozen=True, slots=True)
class RaftSettings:
    node_id: int
    #: Where this node's metadata log lives; known even in a static quorum, whose voter set has none.
    directory_id: DirectoryId = ZERO_UUID
    cluster_id: str = ""
    #: The listener that controllers talk to each other on (the first of `controller.listener.names`).
    listener: str = "CONTROLLER"
    #: Where this node's controller listens; empty for a broker.
    endpoints: tuple[VoterEndpoint, ...] = ()
    #: `controller.quorum.bootstrap.servers`; empty: the static voters are asked.
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    #: `process.roles` has controller.
    can_vote: bool = True
    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    retry_backoff_ms: int = 20
    request_timeout_ms: int = 2000
    fetch_max_bytes: int = 1 << 20
    fetch_snapshot_max_bytes: int = 1 << 20
    #: `controller.quorum.auto.join.enable`: a controller that does not vote asks to be added.
    auto_join: bool = False

    @property
    def local_voter(self) -> Voter:
        """This node as a voter of a dynamic quorum."""
        return Voter(self.node_id, self.directory_id, self.endpoints, STATIC, DYNAMIC)
