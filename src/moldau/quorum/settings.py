"""What the metadata quorum needs to know of a node's configuration."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.base.broker_config import BrokerConfig
from moldau.base.ids import DirectoryId
from moldau.quorum.bootstrap import LOG_FOLDER
from moldau.raft.voters import Voter, VoterEndpoint
from moldau.storage.log_config import LogConfig

_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class QuorumSettings:
    node_id: int
    #: The log directory with `bootstrap.checkpoint` and the folder of the metadata log.
    directory: str
    directory_id: DirectoryId
    #: Where the controller of this node listens.
    endpoints: tuple[VoterEndpoint, ...] = ()
    #: Ids of `controller.quorum.voters`; empty for a dynamic quorum.
    static_voters: tuple[int, ...] = ()
    segment_bytes: int = 1024 * _MEBIBYTE
    segment_ms: int = 604_800_000
    max_batch_bytes: int = 8 * _MEBIBYTE
    snapshot_after_bytes: int = 20 * _MEBIBYTE
    #: 0 means: not by time.
    snapshot_after_ms: int = 3_600_000
    retention_bytes: int = 100 * _MEBIBYTE
    retention_ms: int = 604_800_000

    @classmethod
    def from_config(cls, config: BrokerConfig, directory_id: DirectoryId) -> QuorumSettings:
        listeners = config.advertised_controller_listeners
        return cls(
            node_id=config.node_id,
            directory=config.metadata_log_dir,
            directory_id=directory_id,
            endpoints=tuple(VoterEndpoint(each.name, each.host, each.port) for each in listeners),
            static_voters=tuple(voter.node_id for voter in config.quorum_voters),
            segment_bytes=config.integer("metadata.log.segment.bytes"),
            segment_ms=config.integer("metadata.log.segment.ms"),
            snapshot_after_bytes=config.integer("metadata.log.max.record.bytes.between.snapshots"),
            snapshot_after_ms=config.integer("metadata.log.max.snapshot.interval.ms"),
            retention_bytes=config.integer("metadata.max.retention.bytes"),
            retention_ms=config.integer("metadata.max.retention.ms"),
        )

    @property
    def folder(self) -> str:
        """The folder of the metadata log itself."""
        return f"{self.directory}/{LOG_FOLDER}"

    @property
    def local_voter(self) -> Voter:
        return Voter(self.node_id, self.directory_id, self.endpoints)

    def log_config(self) -> LogConfig:
        """Nothing expires by itself: old segments go when a snapshot has taken their place."""
        return LogConfig(
            segment_bytes=self.segment_bytes,
            segment_ms=self.segment_ms,
            max_message_bytes=self.max_batch_bytes,
            retention_ms=-1,
            retention_bytes=-1,
        )
