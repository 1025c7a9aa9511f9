"""Topics of the target: created with partitions and configs of the source, grown when the source grows."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.admin.configs import ConfigEntry, ConfigResource, ResourceType, describe_configs
from moldau.client.admin.topic_types import NewTopic
from moldau.client.admin.topics import create_partitions, create_topics
from moldau.client.wire.cluster import Cluster
from moldau.config.definition import ConfigSource
from moldau.pipelines.mirror.config.definitions import SOURCE
from moldau.pipelines.mirror.config.flow import Flow, TopicSelection
from moldau.pipelines.mirror.copy.assignment import KnownTopic, known_topics

logger = logging.getLogger(__name__)


class TargetTopics:
    """Creates what is missing on the target; `mirrored` has the topics of the last look, by source name."""

    def __init__(self, flow: Flow, source: Cluster, target: Cluster) -> None:
        self.mirrored: dict[str, str] = {}
        self._flow = flow
        self._selection = TopicSelection(flow)
        self._source, self._target = source, target
        self._reported: set[str] = set()

    async def refresh(self) -> None:
        source, target = self._source, self._target
        found = known_topics((await source.retry(lambda: source.metadata(None))).topics)
        existing = known_topics((await target.retry(lambda: target.metadata(None))).topics)
        wanted = {name: self._selection.remote(name) for name in found if self._selection.mirrors(name)}
        self._report_loops(found)
        await self._create([name for name, remote in wanted.items() if remote not in existing], found)
        await self._grow(
            {
                remote: found[name].partitions
                for name, remote in wanted.items()
                if remote in existing and existing[remote].partitions < found[name].partitions
            }
        )
        self.mirrored = {name: remote for name, remote in wanted.items() if remote in existing}

    async def _create(self, names: list[str], found: Mapping[str, KnownTopic]) -> None:
        if not names:
            return
        configs = await topic_configs(self._source, names)
        new = [
            NewTopic(
                self._selection.remote(name),
                found[name].partitions,
                self._flow["replication.factor"],
                configs=creation_configs(self._flow, self._selection, configs.get(name, [])),
            )
            for name in names
        ]
        for name, error in (await create_topics(self._target, new)).items():
            if error is None:
                logger.info("%s: created topic %s", self._flow, name)
            elif error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                self._report(name, f"topic {name} cannot be created on {self._flow.target}: {error}")

    async def _grow(self, counts: Mapping[str, int]) -> None:
        if not counts:
            return
        for name, error in (await create_partitions(self._target, counts)).items():
            if error is None:
                logger.info("%s: topic %s has %d partitions now", self._flow, name, counts[name])
            else:
                self._report(name, f"topic {name} cannot get {counts[name]} partitions: {error}")

    def _report_loops(self, found: Mapping[str, KnownTopic]) -> None:
        """Log topics that are left out because both directions would mirror them under the same name."""
        if self._flow.opposite_topics is None:
            return
        for name in found:
            if self._flow.topics.allows(name) and self._selection.is_loop(name):
                self._report(name, f"topic {name} is not mirrored: the opposite flow would send it back")

    def _report(self, name: str, sentence: str) -> None:
        """Log a problem of a topic once."""
        if name not in self._reported:
            self._reported.add(name)
            logger.error("%s: %s", self._flow, sentence)


async def topic_configs(cluster: Cluster, names: Iterable[str]) -> dict[str, list[ConfigEntry]]:
    """Return the configs of topics; those that do not exist or may not be described are left out."""
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    described = await describe_configs(cluster, resources)
    return {
        resource.name: entries
        for resource, entries in described.items()
        if not isinstance(entries, KafkaError)
    }


def creation_configs(flow: Flow, selection: TopicSelection, entries: list[ConfigEntry]) -> dict[str, str]:
    """Return the configs with which a topic is created: values of the topic, and defaults if wanted."""
    return {
        entry.name: entry.value
        for entry in entries
        if entry.value is not None
        and is_copied(selection, entry)
        and (not entry.is_default or flow["use.defaults.from"] == SOURCE)
    }


def is_copied(selection: TopicSelection, entry: ConfigEntry) -> bool:
    static = entry.source is ConfigSource.STATIC_BROKER_CONFIG
    return not (entry.read_only or entry.sensitive or static) and selection.copies_config(entry.name)
