"""Whether this node can be part of the quorum that its folder and its settings speak of."""

from __future__ import annotations

import logging

from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.quorum_state import FILE_NAME
from moldau.quorum.settings import QuorumSettings
from moldau.raft.types import Election, OffsetAndEpoch
from moldau.raft.voter_history import VoterHistory
from moldau.raft.voters import STATIC

log = logging.getLogger(__name__)


def check_membership(settings: QuorumSettings, history: VoterHistory) -> None:
    """UnusableMetadata, if nothing could ever come of it."""
    node_id, folder, voters = settings.node_id, settings.folder, history.voters
    if not voters.voters and not settings.bootstrap_servers:
        raise UnusableMetadata(
            f"Nothing says who votes in the metadata quorum: {folder} has no voters and "
            "controller.quorum.voters is not set. Format the folder with --standalone."
        )
    if not settings.can_vote:
        return
    voter = voters.get(node_id)
    if voter is None:
        if history.kraft_version == STATIC and voters.voters:
            raise UnusableMetadata(
                f"Node {node_id} is not a voter of the metadata quorum in {folder}; its voters are "
                f"{', '.join(map(str, voters.ids))}."
            )
        log.info("this node does not vote in the metadata quorum yet; it follows as an observer")
        return
    if history.kraft_version > STATIC and voter.directory_id != settings.directory_id:
        if len(voters.voters) == 1:
            raise UnusableMetadata(
                f"The metadata log in {folder} belongs to another directory than its meta.properties says "
                "(directory.id); it was copied from somewhere else."
            )
        log.warning(
            "this node votes in the metadata quorum with another directory than that of %s, so it follows as "
            "an observer; remove the old voter and add the new one (kafka-metadata-quorum)",
            folder,
        )


def check_memory(
    settings: QuorumSettings, history: VoterHistory, stored: Election | None, end: OffsetAndEpoch
) -> None:
    """A voter that has forgotten for whom it voted must not vote again: there could be two leaders.

    The file is written before the node takes part in an epoch, so it is never behind the log. The only voter
    has nobody to disagree with.
    """
    is_voter = settings.can_vote and history.voters.has(settings.node_id, settings.directory_id)
    if not is_voter or len(history.voters.voters) < 2 or end.offset == 0:
        return
    if stored is None or stored.leader_epoch < end.epoch:
        state = "is missing" if stored is None else f"ends at epoch {stored.leader_epoch}"
        raise UnusableMetadata(
            f"{settings.folder}/{FILE_NAME} {state}, but the metadata log beside it has reached epoch "
            f"{end.epoch}: this node may have voted since and must not vote twice. Restore the newest copy "
            "of the file; or format the folder anew, so that the node joins with a new directory id."
        )
