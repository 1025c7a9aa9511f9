"""The coordinators of a node and their topics, kept in step with the metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.internal_topics import InternalTopics

if TYPE_CHECKING:
    from moldau.server.node import Node


class Coordinators:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._all: list[Coordinator[Any]] = []
        self.internal_topics = InternalTopics(lambda: node.config, self._create)
        #: The topics whose coordinators are served.
        self.topics = frozenset(each.topic for each in self._all)

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """The replicas are in place: take over what this node leads now, drop what it no longer leads."""
        for coordinator in self._all:
            coordinator.apply(delta, image)

    async def close(self) -> None:
        for coordinator in self._all:
            await coordinator.close()

    async def _create(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        return await self._node.controller_channel.create_topics(None, request)
