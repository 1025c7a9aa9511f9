"""The listeners of a node, by their roles: ports are taken at once, connections when the role is ready."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.network.listener import Listener, OpenSockets
from moldau.server.dispatch.apis import ServedApi, served_apis
from moldau.server.dispatch.dispatcher import ApiDispatcher
from moldau.server.roles import BROKER, CONTROLLER

if TYPE_CHECKING:
    from moldau.server.node import Node


class Listeners:
    def __init__(self, node: Node, open_sockets: OpenSockets | None) -> None:
        self._node = node
        self._open_sockets = open_sockets
        self._listeners: list[Listener] = []
        self._controller_names = node.config.controller_listener_names
        unstable = node.config["unstable.api.versions.enable"]
        self._apis = {role: served_apis(role, unstable=unstable) for role in (BROKER, CONTROLLER)}

    def role_of(self, name: str) -> str:
        return CONTROLLER if name in self._controller_names else BROKER

    def apis_of(self, name: str) -> Mapping[int, ServedApi]:
        return self._apis[self.role_of(name)]

    def bind(self) -> dict[str, int]:
        """Take the ports; which they are, by the listeners' names."""
        config, ports = self._node.config, {}
        for endpoint in config.listeners:
            dispatcher = ApiDispatcher(self._node, self._apis[self.role_of(endpoint.name)], endpoint.protocol)
            listener = Listener(
                endpoint.name,
                dispatcher,
                self._node.limits,
                max_frame=config["socket.request.max.bytes"],
                backlog=config["socket.listen.backlog.size"],
                send_buffer_bytes=config["socket.send.buffer.bytes"],
                receive_buffer_bytes=config["socket.receive.buffer.bytes"],
                open_sockets=self._open_sockets,
            )
            self._listeners.append(listener)
            ports[endpoint.name] = listener.bind(endpoint.host or None, endpoint.port)
        return ports

    async def accept(self, role: str) -> None:
        for listener in self._of(role):
            await listener.accept()

    async def close(self, role: str) -> None:
        for listener in self._of(role):
            await listener.close()

    def _of(self, role: str) -> list[Listener]:
        return [each for each in self._listeners if self.role_of(each.name) == role]
