"""Replication policies: names of mirrored topics and of the internal topics of a mirror.

`DefaultReplicationPolicy` prefixes mirrored topics with the alias of their source cluster, which makes loops
recognisable. `IdentityReplicationPolicy` keeps names; only heartbeats topics are prefixed.
"""

from __future__ import annotations

from dataclasses import dataclass

_HEARTBEATS = "heartbeats"


@dataclass(frozen=True, slots=True)
class ReplicationPolicy:
    """`identity_source` is the alias of the source cluster under the identity policy, else None."""

    separator: str = "."
    internal_separator: str = "."
    identity_source: str | None = None

    @property
    def is_identity(self) -> bool:
        return self.identity_source is not None

    @property
    def heartbeats_topic(self) -> str:
        return _HEARTBEATS

    def format_remote_topic(self, source: str, topic: str) -> str:
        """Return the name of a source topic on the target cluster."""
        return topic if self._keeps_name(topic) else f"{source}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Return the alias of the cluster a topic was mirrored from; None for a topic of this cluster."""
        if self._keeps_name(topic):
            return self.identity_source
        # Java's split drops empty strings at the end, so `name.` is not a remote topic.
        while topic.endswith(self.separator):
            topic = topic.removesuffix(self.separator)
        source, found, _ = topic.partition(self.separator)
        return source if found else None

    def upstream_topic(self, topic: str) -> str | None:
        """Return the name of a mirrored topic on its source cluster; None for a topic of this cluster."""
        if self._keeps_name(topic):
            return topic
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def original_topic(self, topic: str) -> str:
        """Return the name of a topic on the cluster it was created on, which may be several hops away."""
        upstream = self.upstream_topic(topic)
        return topic if upstream is None or upstream == topic else self.original_topic(upstream)

    def is_heartbeats_topic(self, topic: str) -> bool:
        return self.original_topic(topic) == _HEARTBEATS

    def is_internal_topic(self, topic: str) -> bool:
        """Return whether a topic belongs to Kafka or a mirror, and is never mirrored."""
        of_mirror = topic.startswith("mm2") and topic.endswith(f"{self.internal_separator}internal")
        return topic.startswith(("__", ".")) or of_mirror or self.is_checkpoints_topic(topic)

    def is_cycle(self, topic: str, target: str) -> bool:
        """Return whether a topic was mirrored from the target cluster, directly or over several hops."""
        source = self.topic_source(topic)
        if source is None:
            return False
        if source == target:
            return True
        upstream = self.upstream_topic(topic)
        return upstream is not None and upstream != topic and self.is_cycle(upstream, target)

    def offset_syncs_topic(self, other_cluster: str) -> str:
        between = self.internal_separator
        return f"mm2-offset-syncs{between}{other_cluster}{between}internal"

    def checkpoints_topic(self, source: str) -> str:
        between = self.internal_separator
        return f"{source}{between}checkpoints{between}internal"

    def is_checkpoints_topic(self, topic: str) -> bool:
        return topic.endswith(self.checkpoints_topic(""))

    def _keeps_name(self, topic: str) -> bool:
        return self.is_identity and not topic.endswith(_HEARTBEATS)
