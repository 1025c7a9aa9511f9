"""Health of a node: whether its event loop responds, and whether clients can use it.

A broker is ready when it is registered and unfenced, its controller accepts its heartbeats, it has applied
the committed metadata, and its log directories are online. A node that is only a controller is ready when it
follows an active controller, or is the active one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from moldau.raft.types import Role

if TYPE_CHECKING:
    from moldau.server.broker import Broker
    from moldau.server.node import Node

#: A loop that was blocked this long a moment ago is not responsive.
_BLOCKED_MS: Final = 5000.0
#: An image that takes longer to apply makes the metadata outdated.
_APPLY_SECONDS: Final = 10.0


class Health:
    def __init__(self, node: Node) -> None:
        self._node = node

    def problems(self) -> list[str]:
        """Return why the process is not healthy; empty if it is."""
        node = self._node
        found = []
        if node.failed:
            found.append("the node stops after a fatal error")
        if node.loop_lag.last_ms > _BLOCKED_MS:
            found.append(f"the event loop was blocked for {node.loop_lag.last_ms:.0f} ms")
        return found

    def reasons_not_ready(self) -> list[str]:
        """Return why clients cannot use the node; empty if they can."""
        node = self._node
        if node.stopping:
            return ["the node is shutting down"]
        if not node.is_wired:
            return ["the node is starting: its folders are not read yet"]
        broker = node.broker_role
        reasons = [*self.problems(), *self._metadata()]
        if broker is not None:
            reasons += [*self._registration(broker), *self._directories(broker)]
        if not reasons and not node.started:
            reasons.append("the node is starting: its listeners are not open yet")
        return reasons

    def _metadata(self) -> Iterator[str]:
        services = self._node.services
        if services.quorum.image.offset < 0 or services.metadata.image.offset < 0:
            yield "the committed metadata is not applied yet"
        elif services.metadata.applying_seconds > _APPLY_SECONDS:
            yield f"the metadata is outdated: an image has been applied for {_APPLY_SECONDS:.0f} s"
        if self._node.broker_role is None and services.quorum.role not in (Role.LEADER, Role.FOLLOWER):
            yield "there is no active controller"

    def _registration(self, broker: Broker) -> Iterator[str]:
        services, lifecycle = self._node.services, broker.lifecycle
        registered = services.metadata.image.cluster.brokers.get(services.id)
        if lifecycle.epoch < 0 or registered is None:
            yield "the broker is not registered"
            return
        timeout_ms = services.settings.config.integer("broker.session.timeout.ms")
        if lifecycle.is_fenced or registered.fenced:
            yield "the broker is fenced"
        elif lifecycle.heartbeat_at is not None:
            silent_ms = (asyncio.get_running_loop().time() - lifecycle.heartbeat_at) * 1000
            if silent_ms > timeout_ms:
                yield f"the broker is fenced: no controller has accepted a heartbeat for {silent_ms:.0f} ms"

    def _directories(self, broker: Broker) -> Iterator[str]:
        for directory in broker.logs.directories:
            if not directory.online:
                yield f"the log directory {directory.path} is offline"
