"""Keeps `quorum-state` on disk, whatever it takes: without it this node must not act."""

from __future__ import annotations

import asyncio
import logging

from moldau.base.pool import Pool
from moldau.quorum.quorum_state import FILE_NAME, read_quorum_state, write_quorum_state
from moldau.quorum.settings import QuorumSettings
from moldau.raft.types import Election
from moldau.raft.voters import VoterSet
from moldau.storage.disk.disk import Disk, LogDirectoryFailed, storage_failure

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


class StateFile:
    def __init__(self, disk: Disk, pool: Pool, settings: QuorumSettings) -> None:
        self._disk = disk
        self._pool = pool
        self._path = f"{settings.folder}/{FILE_NAME}"

    def read(self) -> Election | None:
        """None when there is no file. Blocking."""
        return read_quorum_state(self._disk, self._path)

    async def write(self, state: Election, kraft_version: int, voters: VoterSet) -> None:
        """Until it is on disk: a full disk keeps this node out of the quorum, and nothing else."""
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
                log.error("this node takes no part in the metadata quorum: %s", failure)
            await asyncio.sleep(_RETRY_SECONDS)
