"""Whether the consumer protocol is offered, and the work its shards ask the node to do."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.group import CONSUMER
from moldau.groups.modern.regex import ResolvedRegex, ResolveRegexes
from moldau.metadata.features import GROUP_VERSION
from moldau.server.background import Background

if TYPE_CHECKING:
    from moldau.server.node import Node

log = logging.getLogger(__name__)


def check_offered(node: Node) -> None:
    """UNSUPPORTED_VERSION unless both the broker's settings and the cluster's feature level allow it."""
    protocols: Any = node.config["group.coordinator.rebalance.protocols"]
    if CONSUMER not in protocols or node.image.features.level(GROUP_VERSION) < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


class RegexResolution:
    """Matches regular expressions in the pool, and tells the shard that asked what they match."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._work = Background()

    def take(self, effect: Any) -> None:
        if isinstance(effect, ResolveRegexes):
            self._work.begin(self._resolve(effect))

    async def _resolve(self, effect: ResolveRegexes) -> None:
        resolved = await self._node.pool.run(effect.resolve)
        try:
            await self._tell(effect.group_id, resolved)
        except KafkaError as error:
            log.info("what group %s subscribes to is not stored: %s", effect.group_id, error)
            # Nothing has come of it: the next heartbeat may ask again.
            with suppress(KafkaError):
                await self._tell(effect.group_id, {})

    async def _tell(self, group_id: str, resolved: Mapping[str, ResolvedRegex]) -> None:
        groups = self._node.coordinators.groups
        await groups.write(group_id, lambda shard: shard.regexes_resolved(group_id, resolved))

    async def close(self) -> None:
        await self._work.close()
