"""Which topics the members of a classic group have subscribed to, as far as the coordinator can tell.

Only members that speak the consumers' own protocol say so in a form we can read; version 0 of it is enough,
because topics come first in every version.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from moldau.groups.classic.member import ClassicMember
from moldau.protocol.errors import DecodeError
from moldau.protocol.schema import decode_prefix
from moldau.protocol.stored.consumer_protocol import ConsumerProtocolSubscription

log = logging.getLogger(__name__)

CONSUMER_PROTOCOL_TYPE = "consumer"
_VERSION_BYTES = 2


def subscribed_topics(
    group_id: str, protocol_type: str | None, protocol: str | None, members: Iterable[ClassicMember]
) -> frozenset[str] | None:
    """None when nobody can tell."""
    if protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    topics: set[str] = set()
    for member in members:
        if protocol is None:
            return None
        try:
            topics.update(topics_of(member.metadata(protocol)))
        except DecodeError as error:
            log.warning("what %s of group %s subscribes to cannot be read: %s", member, group_id, error)
            return None
    return frozenset(topics)


def topics_of(metadata: bytes) -> list[str]:
    if len(metadata) < _VERSION_BYTES:
        raise DecodeError("a subscription begins with its version")
    subscription, _ = decode_prefix(ConsumerProtocolSubscription, memoryview(metadata), 0, _VERSION_BYTES)
    return subscription.topics
