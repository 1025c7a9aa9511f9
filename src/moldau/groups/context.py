"""What the parts of one shard share, and who asks: time, chance, settings and the cluster's metadata."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.base.clock import Clock
from moldau.base.ids import Randomness
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
    #: The settings in force at the moment of asking.
    settings: Callable[[], GroupSettings]
    #: The newest metadata this shard has been told of.
    image: MetadataImage = field(default_factory=MetadataImage.empty)

    def member_uuid(self) -> str:
        """A random id in the form Java prints, which is what member ids end with."""
        bits = self.randomness.getrandbits(128)
        bits = bits & ~(0xF << 76) | 0x4 << 76
        bits = bits & ~(0x3 << 62) | 0x2 << 62
        text = f"{bits:032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


#: By type of key: what makes a stored record, found at an offset, part of the state.
Replays = dict[type[Message], Callable[[CoordinatorRecord, int], None]]


class Requester(NamedTuple):
    """Who sent a request, as far as the coordinator cares."""

    api_version: int
    client_id: str
    #: With the slash in front, as Kafka stores and shows it.
    client_host: str
