"""The dependencies of a shard's classes, and the sender of a request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.base.clock import Clock
from moldau.base.ids import Randomness
from moldau.groups.counts import GroupCounts
from moldau.groups.settings import GroupSettings
from moldau.metadata.image import MetadataImage
from moldau.protocol.schema import Message
from moldau.statemachine.coordinator_records import CoordinatorRecord
from moldau.statemachine.timers import Timers


@dataclass(slots=True)
class GroupContext:
    timers: Timers
    clock: Clock
    randomness: Randomness
    #: Returns the current settings; dynamic config updates apply immediately.
    settings: Callable[[], GroupSettings]
    #: The latest metadata image of this shard.
    image: MetadataImage = field(default_factory=MetadataImage.empty)
    #: Of all shards of the node.
    counts: GroupCounts = field(default_factory=GroupCounts)

    def member_uuid(self) -> str:
        """Return a random UUID in Java's text form, the suffix of classic member ids."""
        bits = self.randomness.getrandbits(128)
        bits = bits & ~(0xF << 76) | 0x4 << 76
        bits = bits & ~(0x3 << 62) | 0x2 << 62
        text = f"{bits:032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


#: By key type: applies a stored record and its offset to the state.
Replays = dict[type[Message], Callable[[CoordinatorRecord, int], None]]


class Requester(NamedTuple):
    """The sender of a request."""

    api_version: int
    client_id: str
    #: With a leading slash, as Kafka stores and shows it.
    client_host: str
    #: Returns whether the sender may describe a topic; None: all topics.
    may_describe: Callable[[str], bool] | None = None
