"""The part of a node's configuration that the metadata quorum needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from moldau.base.ids import DirectoryId
from moldau.config.broker.config import BrokerConfig
from moldau.metadata.image import Endpoint
from moldau.quorum.bootstrap import LOG_FOLDER
from moldau.raft.settings import RaftSettings
from moldau.raft.voters import Voter, VoterEndpoint, VoterSet
from moldau.storage.log.config import LogConfig

_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class QuorumSettings:
    node_id: int
    #: The log directory that contains `bootstrap.checkpoint` and the folder of the metadata log.
    directory: str
    directory_id: DirectoryId
    #: The endpoints of this node's controller.
    endpoints: tuple[VoterEndpoint, ...] = ()
    cluster_id: str = ""
    #: Whether `process.roles` contains `controller`; a broker is an observer.
    can_vote: bool = True
    #: The listener of the quorum: the first of `controller.listener.names`.
    listener: str = "CONTROLLER"
    #: `controller.quorum.voters`; empty for a dynamic quorum.
    static_voters: VoterSet = field(default_factory=VoterSet)
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    election_timeout_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_bytes: int = _MEBIBYTE
    fetch_snapshot_max_bytes: int = _MEBIBYTE
    auto_join: bool = False
    segment_bytes: int = 1024 * _MEBIBYTE
    segment_ms: int = 604_800_000
    max_batch_bytes: int = 8 * _MEBIBYTE
    snapshot_after_bytes: int = 20 * _MEBIBYTE
    #: `metadata.log.max.snapshot.interval.ms`; 0 disables snapshots by time.
    snapshot_after_ms: int = 3_600_000
    retention_bytes: int = 100 * _MEBIBYTE
    retention_ms: int = 604_800_000

    @classmethod
    def from_config(
        cls,
        config: BrokerConfig,
        directory_id: DirectoryId,
        cluster_id: str,
        endpoints: Sequence[Endpoint],
    ) -> QuorumSettings:
        """`endpoints` are the bound endpoints of this node's controller, with their actual ports."""
        listener = config.controller_listener_names[0]
        return cls(
            node_id=config.node_id,
            directory=config.metadata_log_dir,
            directory_id=directory_id,
            endpoints=tuple(VoterEndpoint(each.name, each.host, each.port) for each in endpoints),
            cluster_id=cluster_id,
            can_vote="controller" in config.process_roles,
            listener=listener,
            static_voters=VoterSet.of(
                Voter(voter.node_id, endpoints=(VoterEndpoint(listener, voter.host, voter.port),))
                for voter in config.quorum_voters
            ),
            bootstrap_servers=tuple((each.host, each.port) for each in config.quorum_bootstrap_servers),
            election_timeout_ms=config.integer("controller.quorum.election.timeout.ms"),
            election_backoff_max_ms=config.integer("controller.quorum.election.backoff.max.ms"),
            fetch_timeout_ms=config.integer("controller.quorum.fetch.timeout.ms"),
            request_timeout_ms=config.integer("controller.quorum.request.timeout.ms"),
            retry_backoff_ms=config.integer("controller.quorum.retry.backoff.ms"),
            fetch_max_bytes=config.integer("controller.quorum.fetch.max.bytes"),
            fetch_snapshot_max_bytes=config.integer("controller.quorum.fetch.snapshot.max.bytes"),
            auto_join=config["controller.quorum.auto.join.enable"],
            segment_bytes=config.integer("metadata.log.segment.bytes"),
            segment_ms=config.integer("metadata.log.segment.ms"),
            snapshot_after_bytes=config.integer("metadata.log.max.record.bytes.between.snapshots"),
            snapshot_after_ms=config.integer("metadata.log.max.snapshot.interval.ms"),
            retention_bytes=config.integer("metadata.max.retention.bytes"),
            retention_ms=config.integer("metadata.max.retention.ms"),
        )

    @property
    def folder(self) -> str:
        """The folder of the metadata log."""
        return f"{self.directory}/{LOG_FOLDER}"

    @property
    def raft(self) -> RaftSettings:
        """The settings of Raft."""
        return RaftSettings(
            node_id=self.node_id,
            directory_id=self.directory_id,
            cluster_id=self.cluster_id,
            listener=self.listener,
            endpoints=self.endpoints,
            bootstrap_servers=self.bootstrap_servers,
            can_vote=self.can_vote,
            election_timeout_ms=self.election_timeout_ms,
            fetch_timeout_ms=self.fetch_timeout_ms,
            election_backoff_max_ms=self.election_backoff_max_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            request_timeout_ms=self.request_timeout_ms,
            fetch_max_bytes=self.fetch_max_bytes,
            fetch_snapshot_max_bytes=self.fetch_snapshot_max_bytes,
            auto_join=self.auto_join,
        )

    def log_config(self) -> LogConfig:
        """Return the log's config. Segments do not expire; they are deleted when a snapshot replaces them."""
        return LogConfig(
            segment_bytes=self.segment_bytes,
            segment_ms=self.segment_ms,
            max_message_bytes=self.max_batch_bytes,
            retention_ms=-1,
            retention_bytes=-1,
        )
