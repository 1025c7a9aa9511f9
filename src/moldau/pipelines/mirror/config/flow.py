"""A flow from one cluster to another, with its settings and the connections to both clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.mirror.config.definitions import IDENTITY_POLICY, SOURCE
from moldau.pipelines.mirror.config.filters import NameFilter, pattern_of
from moldau.pipelines.mirror.config.policy import ReplicationPolicy


@dataclass(frozen=True, slots=True)
class Flow:
    """`values` has every setting of `SETTINGS`, parsed. A flow can be sent to other processes."""

    source: str
    target: str
    values: Mapping[str, Any]
    #: Properties of the clients of each cluster.
    source_properties: Mapping[str, str]
    target_properties: Mapping[str, str]
    #: The topics of the opposite flow, if it exists and both keep the names of topics.
    opposite_topics: NameFilter | None = None

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"

    @property
    def policy(self) -> ReplicationPolicy:
        return policy_of(self.values, self.source)

    @property
    def topics(self) -> NameFilter:
        return NameFilter.of("topics", self["topics"], self["topics.exclude"])

    @property
    def groups(self) -> NameFilter:
        return NameFilter.of("groups", self["groups"], self["groups.exclude"])

    @property
    def exactly_once(self) -> bool:
        return bool(self["exactly.once.source.support"] == "enabled")

    @property
    def syncs_on_source(self) -> bool:
        return bool(self["offset-syncs.topic.location"] == SOURCE)

    @property
    def offset_syncs_topic(self) -> str:
        return self.policy.offset_syncs_topic(self.target if self.syncs_on_source else self.source)

    @property
    def checkpoints_topic(self) -> str:
        return self.policy.checkpoints_topic(self.source)

    @property
    def offsets_topic(self) -> str:
        return self["offset.storage.topic"] or f"mm2-offsets.{self.source}.internal"

    @property
    def read_committed(self) -> bool:
        return self.source_properties.get("isolation.level", "read_committed") != "read_uncommitted"

    @property
    def starts_at_end(self) -> bool:
        """Whether partitions without a stored offset are copied from their end."""
        return self.source_properties.get("auto.offset.reset", "earliest") == "latest"

    def source_settings(self, role: str) -> ClientSettings:
        return self._settings(self.source_properties, role)

    def target_settings(self, role: str) -> ClientSettings:
        return self._settings(self.target_properties, role)

    def _settings(self, properties: Mapping[str, str], role: str) -> ClientSettings:
        prefix = properties.get("client.id")
        client_id = f"{prefix}|{self}|{role}" if prefix else f"{self}|{role}"
        return ClientSettings.from_properties({**properties, "client.id": client_id})


class TopicSelection:
    """Which topics of the source a flow mirrors, and their names on the target. Compiled once."""

    def __init__(self, flow: Flow) -> None:
        self._policy = flow.policy
        self._topics = flow.topics
        self._opposite = flow.opposite_topics
        self._heartbeats = bool(flow["heartbeats.replication.enabled"])
        self._source, self._target = flow.source, flow.target
        self._excluded_configs = pattern_of("config.properties.exclude", flow["config.properties.exclude"])

    def mirrors(self, topic: str) -> bool:
        policy = self._policy
        wanted = self._topics.allows(topic) or (self._heartbeats and policy.is_heartbeats_topic(topic))
        return wanted and not policy.is_internal_topic(topic) and not self.is_loop(topic)

    def is_loop(self, topic: str) -> bool:
        """Return whether the topic came from the target, or the opposite flow would send it back."""
        if self._policy.is_heartbeats_topic(topic) or not self._policy.is_identity:
            return self._policy.is_cycle(topic, self._target)
        return self._opposite is not None and self._opposite.allows(topic)

    def remote(self, topic: str) -> str:
        return self._policy.format_remote_topic(self._source, topic)

    def copies_config(self, name: str) -> bool:
        return self._excluded_configs is None or self._excluded_configs.fullmatch(name) is None


def policy_of(values: Mapping[str, Any], source: str) -> ReplicationPolicy:
    separator = values["replication.policy.separator"]
    internal = separator if values["replication.policy.internal.topic.separator.enabled"] else "."
    identity = values["replication.policy.class"] == IDENTITY_POLICY
    return ReplicationPolicy(separator, internal, source if identity else None)
