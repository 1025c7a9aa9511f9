"""One shard of the group coordinator: everything that one partition of `__consumer_offsets` holds.

The shard only puts the parts together and hands each request and each stored record to the part it concerns.
Parts share the registry of groups, the store of offsets and the context; none of them knows the shard.

Each part gives the shard its `replays`: by type of key, what to do with a stored record. A record of a type
that no part knows is left out, so that what a newer release wrote does no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moldau.groups.context import GroupContext
from moldau.groups.registry import GroupRegistry
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.schema import Message
from moldau.statemachine.coordinator_records import CoordinatorRecord, EndTransaction, Entry

log = logging.getLogger(__name__)

#: Makes one stored record, found at an offset, part of the state.
Replay = Callable[[CoordinatorRecord, int], None]


class GroupShard:
    def __init__(self, context: GroupContext) -> None:
        self._context = context
        self.registry = GroupRegistry()
        self._replays: dict[type[Message], Replay] = {}

    # State.

    def replay(self, entries: Sequence[Entry], base_offset: int) -> None:
        for offset, entry in enumerate(entries, base_offset):
            if isinstance(entry, EndTransaction):
                continue
            replay = self._replays.get(type(entry.key))
            if replay is None:
                log.info("a %s at offset %d is left out", type(entry.key).__name__, offset)
            else:
                replay(entry, offset)

    def activate(self, image: MetadataImage) -> None:
        self._context.image = image

    def image_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._context.image = image

    def _add(self, replays: Mapping[type[Message], Any]) -> None:
        self._replays.update(replays)
