"""`moldau dev --tiered`: tiered storage with a folder as the remote store.

The folder is beside the data folder, because a log directory contains nothing but logs.
"""

from __future__ import annotations

from pathlib import Path

_MAX_REPLICAS = 3


def tiered_settings(data: str, brokers: int) -> tuple[str, ...]:
    """Return the settings of the brokers; topics still have to set `remote.storage.enable`."""
    folder = Path(data).absolute()
    return (
        "remote.log.storage.system.enable=true",
        "remote.log.storage.manager.class.name=moldau.tiered.stores.folder.FolderStore",
        f"rsm.config.dir={folder.with_name(f'{folder.name}-remote')}",
        f"rlmm.config.remote.log.metadata.topic.replication.factor={min(_MAX_REPLICAS, brokers)}",
        "rlmm.config.remote.log.metadata.topic.num.partitions=5",
        "remote.log.manager.task.interval.ms=5000",
    )
