"""Reads the folders of a node at start and checks that they belong to it.

The metadata folder must be formatted. A new log directory (a disk was added) is formatted here with its own
directory id. A folder that cannot be read is left to the log manager, which takes it offline.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.base.clock import Clock
from moldau.base.ids import DirectoryId, Randomness, Uuid, random_uuid
from moldau.config.broker.config import BrokerConfig
from moldau.server.startup.meta_properties import (
    Folders,
    MetaProperties,
    UnusableFolder,
    check_folders,
    load_folders,
    write_meta_properties,
)
from moldau.storage.disk.disk import Disk, make_durable_dirs


@dataclass(frozen=True, slots=True)
class NodeFolders:
    cluster_id: str
    metadata_directory_id: DirectoryId
    #: The directory ids of the log directories; None for one that could not be read.
    log_directories: dict[str, Uuid | None]


def read_folders(disk: Disk, clock: Clock, randomness: Randomness, config: BrokerConfig) -> NodeFolders:
    """Read the folders (blocking); raise `UnusableFolder` if the node must not start with them."""
    folders = load_folders(disk, config.directories)
    metadata = config.metadata_log_dir
    if metadata in folders.failed:
        raise UnusableFolder(f"The metadata folder {metadata} cannot be read: {folders.failed[metadata]}")
    if metadata not in folders.formatted:
        raise UnusableFolder(
            f"No `meta.properties` found in {metadata}. Have you run "
            "`kafka-storage format -t CLUSTER_ID -c FILE` to format it? (`moldau dev` does it by itself.)"
        )
    cluster_id = check_folders(folders, config.node_id)
    if cluster_id is None:
        raise UnusableFolder(f"{metadata}/meta.properties does not say which cluster it belongs to.")
    ids = _with_ids(disk, clock, randomness, config.node_id, cluster_id, folders)
    return NodeFolders(
        cluster_id=cluster_id,
        metadata_directory_id=ids[metadata],
        log_directories={path: ids.get(path) for path in config.log_dirs},
    )


def _with_ids(
    disk: Disk, clock: Clock, randomness: Randomness, node_id: int, cluster_id: str, folders: Folders
) -> dict[str, DirectoryId]:
    ids: dict[str, DirectoryId] = {}
    for path in (*folders.formatted, *folders.unformatted):
        known = folders.formatted.get(path)
        if known is not None and known.directory_id is not None:
            ids[path] = known.directory_id
            continue
        ids[path] = random_uuid(randomness)
        make_durable_dirs(disk, path)
        write_meta_properties(disk, clock, path, MetaProperties(1, cluster_id, node_id, ids[path]))
    return ids
