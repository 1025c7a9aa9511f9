"""The listeners of a node: ports are bound first, connections are accepted when their role is ready."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from moldau.config.broker.config import BrokerConfig
from moldau.config.listeners import Endpoint
from moldau.network.connection import Connection
from moldau.network.limits import ConnectionLimits
from moldau.network.listener import Listener, OpenSockets
from moldau.protocol.api_keys import ApiKey
from moldau.security.acl.authorizer import Authorizer
from moldau.server.authentication.listeners import Authenticators
from moldau.server.authentication.tls import NodeTls
from moldau.server.dispatch.apis import served_apis
from moldau.server.dispatch.context import Handler, ListenerContext
from moldau.server.dispatch.dispatcher import ApiDispatcher
from moldau.server.dispatch.throttle import Throttle
from moldau.server.settings import BROKER, CONTROLLER

if TYPE_CHECKING:
    from moldau.server.metrics.requests import RequestMetrics


class Listeners:
    def __init__(
        self,
        config: BrokerConfig,
        limits: Mapping[str, ConnectionLimits],
        open_sockets: OpenSockets | None,
        tls: NodeTls,
        on_disconnect: Callable[[Connection], None],
    ) -> None:
        """`limits` are the connection limits by role."""
        self._config = config
        self._limits = limits
        self._open_sockets = open_sockets
        self._tls = tls
        self._on_disconnect = on_disconnect
        self._protocols = {endpoint.name: endpoint.protocol for endpoint in config.listeners}
        self._listeners: list[Listener] = []

    def bind(self) -> dict[str, int]:
        """Bind the ports of all listeners and return them by listener name."""
        config, ports = self._config, {}
        for endpoint in config.listeners:
            listener = Listener(
                endpoint.name,
                self._limits[self._role(endpoint.name)],
                max_frame=config.for_listener(endpoint.name, _max_frame(endpoint)),
                backlog=config["socket.listen.backlog.size"],
                send_buffer_bytes=config["socket.send.buffer.bytes"],
                receive_buffer_bytes=config["socket.receive.buffer.bytes"],
                open_sockets=self._open_sockets,
                tls=self._tls.of(endpoint.name),
                logs_in=_logs_in(endpoint),
            )
            self._listeners.append(listener)
            ports[endpoint.name] = listener.bind(endpoint.host or None, endpoint.port)
        return ports

    async def accept(
        self,
        role: str,
        handlers: Mapping[int, Handler],
        authenticators: Authenticators,
        authorizer: Authorizer | None,
        throttle: Throttle | None = None,
        requests: RequestMetrics | None = None,
    ) -> None:
        """Serve the listeners of a role; `throttle` is None if no quotas apply to them, `requests` if they
        are not measured."""
        apis = served_apis(
            role,
            unstable=self._config["unstable.api.versions.enable"],
            telemetry=ApiKey.PUSH_TELEMETRY in handlers,
        )
        for listener in self._of(role):
            protocol = self._protocols[listener.name]
            context = ListenerContext(listener.name, role, protocol, apis, handlers, authorizer)
            dispatcher = ApiDispatcher(
                context, authenticators.of(context), self._on_disconnect, throttle, requests
            )
            await listener.accept(dispatcher)

    async def close(self, role: str) -> None:
        for listener in self._of(role):
            await listener.close()

    def _of(self, role: str) -> list[Listener]:
        return [each for each in self._listeners if self._role(each.name) == role]

    def _role(self, listener: str) -> str:
        return CONTROLLER if listener in self._config.controller_listener_names else BROKER


def _max_frame(endpoint: Endpoint) -> str:
    """Return the config that limits the first frames of a connection: small ones until the SASL login."""
    return "sasl.server.max.receive.size" if _logs_in(endpoint) else "socket.request.max.bytes"


def _logs_in(endpoint: Endpoint) -> bool:
    return endpoint.protocol.startswith("SASL_")
