"""The file `quorum-state`: the leader of the latest epoch and this node's vote in it.

JSON in Kafka's format: version 0 for static voters, version 1 for a dynamic quorum. It must be durable before
the node acts in a new epoch; otherwise the node could vote twice, and one epoch could have two leaders.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

from moldau.base.ids import ZERO_UUID, format_uuid, parse_uuid
from moldau.base.pool import Pool
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.settings import QuorumSettings
from moldau.raft.types import ElectionState
from moldau.raft.voters import STATIC, VoterSet
from moldau.storage.disk.disk import Disk, LogDirectoryFailed, storage_failure

logger = logging.getLogger(__name__)

FILE_NAME = "quorum-state"
_RETRY_SECONDS = 1.0


class QuorumStateFile:
    def __init__(self, disk: Disk, pool: Pool, settings: QuorumSettings) -> None:
        self._disk = disk
        self._pool = pool
        self._path = f"{settings.folder}/{FILE_NAME}"

    def read(self) -> ElectionState | None:
        """Return the stored state; None if the file does not exist. Blocking."""
        return read_quorum_state(self._disk, self._path)

    async def write(self, state: ElectionState, kraft_version: int, voters: VoterSet) -> None:
        """Write the state; retry while the disk is full, because the node must not act without it."""
        while True:
            try:
                await self._pool.run(
                    write_quorum_state,
                    self._disk,
                    self._path,
                    state,
                    kraft_version=kraft_version,
                    voters=voters,
                )
                return
            except OSError as error:
                failure = storage_failure(error, self._path)
                if isinstance(failure, LogDirectoryFailed):
                    raise failure from error
                logger.error(
                    "%s cannot be written, so this node does not participate in the metadata quorum: %s",
                    FILE_NAME,
                    failure,
                )
            await asyncio.sleep(_RETRY_SECONDS)


def read_quorum_state(disk: Disk, path: str) -> ElectionState | None:
    """Return the state in the file; None if the file does not exist."""
    if not disk.exists(path):
        return None
    data = disk.read_bytes(path)
    try:
        fields = json.loads(data)
        return _from_fields(fields)
    except (ValueError, KeyError, TypeError) as error:
        raise UnusableMetadata(f"{path} is damaged and cannot be read ({error}).") from error


def _from_fields(fields: dict[str, Any]) -> ElectionState:
    version = int(fields["data_version"])
    if version not in (0, 1):
        raise ValueError(f"data_version {version} is not supported")
    return ElectionState(
        leader_id=int(fields["leaderId"]),
        leader_epoch=int(fields["leaderEpoch"]),
        voted_id=int(fields["votedId"]),
        voted_directory_id=parse_uuid(fields["votedDirectoryId"]) if version else ZERO_UUID,
    )


def write_quorum_state(
    disk: Disk, path: str, state: ElectionState, *, kraft_version: int, voters: VoterSet
) -> None:
    fields: dict[str, object]
    if kraft_version == STATIC:
        fields = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": state.voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in voters.ids],
            "data_version": 0,
        }
    else:
        fields = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": state.voted_id,
            "votedDirectoryId": format_uuid(state.voted_directory_id),
            "data_version": 1,
        }
    disk.write_atomic(path, json.dumps(fields, separators=(",", ":")).encode())
