"""The current leaders in responses to clients with stale metadata (KIP-951)."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

from moldau.base.ids import ZERO_UUID, TopicId
from moldau.metadata.image import MetadataImage
from moldau.server.brokers.peers import endpoint_of


class Leader(NamedTuple):
    id: int
    epoch: int


class Endpoint(TypedDict):
    node_id: int
    host: str
    port: int
    rack: str | None


class CurrentLeaders:
    """The current leaders named by one response, and the endpoint of each."""

    __slots__ = ("_image", "_listener_name", "_told")

    def __init__(self, image: MetadataImage, listener_name: str) -> None:
        self._image = image
        self._listener_name = listener_name
        self._told: dict[int, Endpoint] = {}

    @property
    def endpoints(self) -> list[Endpoint]:
        return list(self._told.values())

    def of(self, name: str, topic_id: TopicId, index: int) -> Leader | None:
        """Return the leader of a partition, by topic id or else by topic name."""
        topics = self._image.topics
        topic = topics.by_name.get(name) if topic_id == ZERO_UUID else topics.by_id.get(topic_id)
        partition = topic.partitions.get(index) if topic is not None else None
        if partition is None:
            return None
        self._remember(partition.leader)
        return Leader(partition.leader, partition.leader_epoch)

    def _remember(self, node_id: int) -> None:
        endpoint = endpoint_of(self._image, node_id, self._listener_name)
        if endpoint is not None:
            rack = self._image.cluster.brokers[node_id].rack
            self._told[node_id] = Endpoint(node_id=node_id, host=endpoint.host, port=endpoint.port, rack=rack)
