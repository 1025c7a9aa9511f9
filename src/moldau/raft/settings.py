"""The part of a node's configuration that Raft needs."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.base.ids import ZERO_UUID, DirectoryId
from moldau.raft.voters import DYNAMIC, STATIC, Voter, VoterEndpoint


@dataclass(frozen=True, slots=True)
class RaftSettings:
    """Timeouts and limits are the `controller.quorum.*` configs of the same name."""

    node_id: int
    #: The directory id of the metadata log; also set in a static quorum, although its voter set has none.
    directory_id: DirectoryId = ZERO_UUID
    cluster_id: str = ""
    #: The listener of the quorum: the first of `controller.listener.names`.
    listener: str = "CONTROLLER"
    #: The endpoints of this node's controller; empty for a broker.
    endpoints: tuple[VoterEndpoint, ...] = ()
    #: `controller.quorum.bootstrap.servers`; if empty, the static voters are used.
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    #: Whether `process.roles` contains `controller`.
    can_vote: bool = True
    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    retry_backoff_ms: int = 20
    request_timeout_ms: int = 2000
    fetch_max_bytes: int = 1 << 20
    fetch_snapshot_max_bytes: int = 1 << 20
    #: `controller.quorum.auto.join.enable`: a controller that is not a voter adds itself (KIP-853).
    auto_join: bool = False

    @property
    def local_voter(self) -> Voter:
        """This node as a voter of a dynamic quorum."""
        return Voter(self.node_id, self.directory_id, self.endpoints, STATIC, DYNAMIC)
