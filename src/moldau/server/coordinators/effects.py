"""The executors of effects: work that coordinator decisions request from the node.

`EffectExecutors` is the one table from effect type to executor. An executor returns immediately and works in
the background; it reports its result to the shard that requested the effect as a new decision.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from moldau.base.errors import KafkaError
from moldau.base.pool import Pool
from moldau.groups.modern.regex import ResolvedRegex, resolve_regexes
from moldau.groups.shard import GroupShard
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.share.persister import Persister
from moldau.server.tasks import BackgroundTasks
from moldau.statemachine.effects import (
    Effect,
    InitializeShareGroupState,
    ResolveRegexes,
    WriteTxnMarkers,
)

logger = logging.getLogger(__name__)

#: The number of topics that are authorised before other tasks run.
_CHECKS_PER_SLICE = 500


class EffectExecutors:
    def __init__(
        self,
        groups: Coordinator[GroupShard],
        persister: Persister,
        pool: Pool,
        write_markers: Callable[[WriteTxnMarkers], None],
    ) -> None:
        self._regexes = RegexResolution(groups, pool)
        self._share_state = ShareStateInitialization(groups, persister)
        self._table: Mapping[type[Effect], Callable[[Any], None]] = {
            ResolveRegexes: self._regexes.start,
            InitializeShareGroupState: self._share_state.start,
            WriteTxnMarkers: write_markers,
        }

    def execute(self, effect: Effect) -> None:
        self._table[type(effect)](effect)

    async def close(self) -> None:
        await self._regexes.close()
        await self._share_state.close()


class RegexResolution:
    """Matches regular expressions in the thread pool and stores the topics with the group."""

    def __init__(self, groups: Coordinator[GroupShard], pool: Pool) -> None:
        self._groups = groups
        self._pool = pool
        self._tasks = BackgroundTasks()

    def start(self, effect: ResolveRegexes) -> None:
        self._tasks.start(self._resolve(effect))

    async def _resolve(self, effect: ResolveRegexes) -> None:
        resolved = await self._pool.run(resolve_regexes, effect)
        if effect.may_describe is not None:
            resolved = await _without_hidden(resolved, effect.may_describe)
        try:
            await self._store(effect.group_id, resolved)
        except KafkaError as error:
            logger.info("the resolved regexes of group %s could not be stored: %s", effect.group_id, error)
            # An empty result lets the next heartbeat request the resolution again.
            with suppress(KafkaError):
                await self._store(effect.group_id, {})

    async def _store(self, group_id: str, resolved: Mapping[str, ResolvedRegex]) -> None:
        await self._groups.write(group_id, lambda shard: shard.regexes_resolved(group_id, resolved))

    async def close(self) -> None:
        await self._tasks.close()


async def _without_hidden(
    resolved: Mapping[str, ResolvedRegex], may_describe: Callable[[str], bool]
) -> dict[str, ResolvedRegex]:
    """Leave out the topics that a member may not describe."""
    names = sorted({topic for regex in resolved.values() for topic in regex.topics})
    visible: set[str] = set()
    for start in range(0, len(names), _CHECKS_PER_SLICE):
        visible.update(filter(may_describe, names[start : start + _CHECKS_PER_SLICE]))
        await asyncio.sleep(0)
    return {regex: replace(found, topics=found.topics & visible) for regex, found in resolved.items()}


class ShareStateInitialization:
    """Initializes share partitions through the persister and stores the outcome with the group."""

    def __init__(self, groups: Coordinator[GroupShard], persister: Persister) -> None:
        self._groups = groups
        self._persister = persister
        self._tasks = BackgroundTasks()

    def start(self, effect: InitializeShareGroupState) -> None:
        self._tasks.start(self._initialize(effect))

    async def _initialize(self, effect: InitializeShareGroupState) -> None:
        groups, group_id = self._groups, effect.group_id
        topics = {topic_id: list(offsets) for topic_id, offsets in effect.offsets.items()}
        try:
            failures = await self._persister.initialize(effect)
            if failures:
                logger.error("the state of share group %s could not be initialized: %s", group_id, failures)
                await groups.write(
                    group_id, lambda shard: shard.share.offsets.not_initialized(group_id, topics)
                )
            else:
                await groups.write(group_id, lambda shard: shard.share.offsets.initialized(group_id, topics))
        except KafkaError as error:
            # A heartbeat after `group.share.initialize.retry.interval.ms` requests it again.
            logger.info("the initialization of share group %s will be retried: %s", group_id, error)

    async def close(self) -> None:
        await self._tasks.close()
