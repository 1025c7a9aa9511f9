"""The file `quorum-state`: who leads in which epoch, and for whom this node voted.

JSON as Kafka writes it, in the version that fits the quorum: 0 for static voters, 1 for a dynamic quorum. It
must be on disk before the node acts in a new epoch, or two leaders could share one.
"""

from __future__ import annotations

import json
from typing import Any

from moldau.base.ids import ZERO_UUID, format_uuid, parse_uuid
from moldau.quorum.errors import UnusableMetadata
from moldau.raft.types import Election
from moldau.raft.voters import STATIC, VoterSet
from moldau.storage.disk.disk import Disk

FILE_NAME = "quorum-state"


def read_quorum_state(disk: Disk, path: str) -> Election | None:
    """The state in the file, or None when there is no file yet."""
    if not disk.exists(path):
        return None
    data = disk.read_bytes(path)
    try:
        fields = json.loads(data)
        return _from_fields(fields)
    except (ValueError, KeyError, TypeError) as error:
        raise UnusableMetadata(f"{path} is damaged and cannot be read ({error}).") from error


def _from_fields(fields: dict[str, Any]) -> Election:
    version = int(fields["data_version"])
    if version not in (0, 1):
        raise ValueError(f"data_version {version} is unknown to this release")
    return Election(
        leader_id=int(fields["leaderId"]),
        leader_epoch=int(fields["leaderEpoch"]),
        voted_id=int(fields["votedId"]),
        voted_directory_id=parse_uuid(fields["votedDirectoryId"]) if version else ZERO_UUID,
    )


def write_quorum_state(
    disk: Disk, path: str, state: Election, *, kraft_version: int, voters: VoterSet
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
