"""Which replica a consumer shall read from (KIP-392): one in its own rack, if the broker is told to look."""

from __future__ import annotations

from moldau.config.broker.support import RACK_AWARE_SELECTOR
from moldau.metadata.image import MetadataImage
from moldau.replication.leadership import Leadership

#: The leader itself.
NONE = -1


def preferred_replica(
    selector: str | None, rack: str, leadership: Leadership, fetch_offset: int, image: MetadataImage
) -> int:
    """The id of a follower in the rack that is in sync and has the offset; -1 to read from the leader."""
    if selector != RACK_AWARE_SELECTOR or not rack:
        return NONE
    brokers = image.cluster.brokers
    leader = brokers.get(leadership.registration.leader)
    if leader is not None and leader.rack == rack:
        return NONE
    candidates = [
        replica
        for replica in leadership.remotes.values()
        if replica.id in leadership.registration.isr
        and replica.log_start_offset <= fetch_offset <= replica.log_end_offset
        and (broker := brokers.get(replica.id)) is not None
        and not broker.fenced
        and broker.rack == rack
    ]
    # The one with the most; of several the one that was caught up last.
    best = max(candidates, key=lambda each: (each.log_end_offset, each.last_caught_up_ms), default=None)
    return NONE if best is None else best.id
