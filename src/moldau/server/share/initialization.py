"""Has the share coordinator make state for new partitions of share groups, and tells the groups."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from moldau.base.errors import KafkaError
from moldau.groups.share.topics import InitializeState
from moldau.server.background import Background

if TYPE_CHECKING:
    from moldau.server.node import Node

log = logging.getLogger(__name__)


class StateInitialization:
    """Takes the effect of heartbeats that found partitions without state."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._work = Background()

    def take(self, effect: Any) -> None:
        if isinstance(effect, InitializeState):
            self._work.begin(self._initialize(effect))

    async def _initialize(self, wanted: InitializeState) -> None:
        groups, group_id = self._node.coordinators.groups, wanted.group_id
        topics = {topic_id: list(offsets) for topic_id, offsets in wanted.offsets.items()}
        try:
            failures = await self._node.coordinators.persister.initialize(wanted)
            if failures:
                log.error("the state of share group %s is not made: %s", group_id, failures)
                await groups.write(
                    group_id, lambda shard: shard.share.offsets.not_initialized(group_id, topics)
                )
            else:
                await groups.write(group_id, lambda shard: shard.share.offsets.initialized(group_id, topics))
        except KafkaError as error:
            # A later heartbeat asks again.
            log.info("the state of share group %s is made later: %s", group_id, error)

    async def close(self) -> None:
        await self._work.close()
