"""`max.connections`: who waits, who is let in, and when."""

from __future__ import annotations

from typing import cast

from moldau.network.connection import Connection
from moldau.network.listener import ConnectionLimits


class Peer:
    """Stands for a connection: knows only whether it is held."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.peer_host = "10.0.0.1"
        self.held = False
        self._limits = limits
        self.admitted = limits.admit(cast(Connection, self))

    def hold(self) -> None:
        self.held = True

    def release(self) -> None:
        self.held = False

    def close(self) -> None:
        self._limits.forget(cast(Connection, self))


def test_connection_over_max_connections_is_held_until_another_closes() -> None:
    limits = ConnectionLimits(max_connections=2)
    first, _, third = Peer(limits), Peer(limits), Peer(limits)
    assert third.admitted
    assert third.held
    first.close()
    assert not third.held


def test_closing_a_held_connection_admits_no_other() -> None:
    limits = ConnectionLimits(max_connections=1)
    first, second, third = Peer(limits), Peer(limits), Peer(limits)
    third.close()
    assert second.held, "the one place is still taken"
    first.close()
    assert not second.held
    assert not limits.waiting


def test_raised_limit_releases_held_connections() -> None:
    limits = ConnectionLimits(max_connections=1)
    _, second, third = Peer(limits), Peer(limits), Peer(limits)
    limits.max_connections = 2
    limits.release_waiting()
    assert (second.held, third.held) == (False, True)


def test_connection_over_the_limit_per_ip_is_refused() -> None:
    limits = ConnectionLimits(max_per_ip=1)
    first, second = Peer(limits), Peer(limits)
    assert (first.admitted, second.admitted) == (True, False)
    second.close()
    first.close()
    assert Peer(limits).admitted
    assert not limits.waiting
