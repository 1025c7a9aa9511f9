"""What a leader must know before it copies or expires segments.

In every leader epoch it first replays what earlier leaders have committed to the metadata topic, and starts
its log with the first offset that one of the tiers has.
"""

from __future__ import annotations

from moldau.server.tiered.metadata import RemoteLogMetadata
from moldau.server.tiered.partitions import TieredPartition
from moldau.storage.log.log import Log
from moldau.tiered.state.copying import highest_remote_offset
from moldau.tiered.state.lineage import remote_log_start
from moldau.tiered.state.remote_log import RemoteLog


class LeaderState:
    def __init__(self, metadata: RemoteLogMetadata) -> None:
        self._metadata = metadata

    async def load(self, tiered: TieredPartition, log: Log, epoch: int) -> RemoteLog:
        """Return the remote log, after all that was committed before this leader epoch."""
        if tiered.led_epoch != epoch:
            remote = await self._metadata.synchronize(tiered.id)
            if tiered.leads_in(epoch):
                epochs = log.leader_epochs.entries
                start = remote_log_start(remote, epochs, log.log_start_offset, log.local_log_start_offset)
                raise_log_start(tiered, log, start)
                tiered.led_epoch = epoch
        remote = self._metadata.loaded(tiered.id)
        log.highest_remote_offset = highest_remote_offset(log, remote)
        return remote


def raise_log_start(tiered: TieredPartition, log: Log, offset: int) -> None:
    """Start the log at an offset, at most its high watermark."""
    offset = min(offset, log.high_watermark)
    if offset > log.log_start_offset:
        log.delete_records_before(offset)
        # Answer waiting fetches of followers at once, with the new log start offset.
        tiered.partition.progress.log_end.notify(0)
