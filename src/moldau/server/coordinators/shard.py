"""What a coordinator's state machine looks like to the node that runs it.

A shard holds the state of one partition of an internal topic. It decides synchronously and without I/O; its
stored state changes only in `replay`, which is the same for what it has just decided and for what a partition
taken over holds. What is to be decided later it puts into its timers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.statemachine.coordinator_records import Entry


class Shard(Protocol):
    def replay(self, entries: Sequence[Entry], base_offset: int) -> None:
        """Make stored entries part of the state; the first has the offset `base_offset`."""
        ...

    def activate(self, image: MetadataImage) -> None:
        """Everything stored is replayed and this node leads: start the timers that the state asks for."""
        ...

    def image_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """The metadata of the cluster has moved on."""
        ...
