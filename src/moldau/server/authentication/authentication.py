"""The authentication of a connection: its first frames, until the client's principal is known.

The dispatcher calls `intercept` while `Connection.principal` is None or the session of the connection can
end. The result is a response, or None if the principal is known and the frame is an ordinary request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from moldau.network.connection import Connection
from moldau.network.responses import Response
from moldau.security.principal import ANONYMOUS, KafkaPrincipal

if TYPE_CHECKING:
    from ssl import SSLObject


class Authentication(Protocol):
    def intercept(self, connection: Connection, frame: memoryview) -> Response | None: ...

    def disconnected(self, connection: Connection) -> None: ...


class NoAuthentication:
    """PLAINTEXT: every client is `User:ANONYMOUS`."""

    def intercept(self, connection: Connection, frame: memoryview) -> Response | None:
        connection.principal = ANONYMOUS
        return None

    def disconnected(self, connection: Connection) -> None:
        return None


class CertificateAuthentication:
    """SSL: the subject of the client's certificate; `User:ANONYMOUS` without one."""

    def __init__(self, principal_of: Callable[[SSLObject | None], KafkaPrincipal]) -> None:
        self._principal_of = principal_of

    def intercept(self, connection: Connection, frame: memoryview) -> Response | None:
        connection.principal = self._principal_of(connection.ssl_object)
        return None

    def disconnected(self, connection: Connection) -> None:
        return None
