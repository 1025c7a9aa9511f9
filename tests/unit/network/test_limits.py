"""Which connections are served, wait, are closed, or take the place of another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from moldau.metadata.image import quota_entity
from moldau.network.connection import Connection
from moldau.network.limits import ConnectionLimits
from moldau.quotas.connections import ConnectionSettings, ListenerLimits
from moldau.quotas.rate import QuotaWindows

EXTERNAL, INTERNAL = "EXTERNAL", "INTERNAL"
WINDOWS = QuotaWindows(2, 100)


class Peer:
    """Stands for a connection: records whether it is held or closed."""

    def __init__(self, limits: ConnectionLimits, listener: str = EXTERNAL, host: str = "10.0.0.1") -> None:
        self.peer_host = host
        self.held = False
        self.closed = False
        self.muted = True
        self.last_activity = 0.0
        self._limits = limits
        self.admitted = limits.admit(cast(Connection, self), listener)

    @property
    def served(self) -> bool:
        return self in cast(Any, self._limits.open) and not self.held

    def hold(self) -> None:
        self.held = True

    def release(self) -> None:
        self.held = False

    def end_mute(self) -> None:
        self.muted = False

    def abort(self) -> None:
        self.closed = True
        self._limits.forget(cast(Connection, self))

    def close(self) -> None:
        self.abort()


def in_loop(scenario: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        async def main() -> None:
            await scenario()

        asyncio.run(main())

    run.__name__ = scenario.__name__
    return run


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


@in_loop
async def test_connection_over_max_connections_waits_until_another_closes() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_connections=2))
    first, _, third = Peer(limits), Peer(limits), Peer(limits)
    assert third.admitted
    assert third.held
    first.close()
    assert third.served


@in_loop
async def test_closing_a_waiting_connection_admits_no_other() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_connections=1))
    first, second, third = Peer(limits), Peer(limits), Peer(limits)
    third.close()
    assert second.held, "the one place is still taken"
    first.close()
    assert second.served


@in_loop
async def test_raised_limit_admits_waiting_connections() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_connections=1))
    _, second, third = Peer(limits), Peer(limits), Peer(limits)
    limits.update(ConnectionSettings(max_connections=2))
    assert (second.served, third.held) == (True, True)


@in_loop
async def test_lowered_limit_closes_the_least_recently_used_connections() -> None:
    limits = ConnectionLimits()
    peers = [Peer(limits) for _ in range(3)]
    peers[0].last_activity = 9.0
    limits.update(ConnectionSettings(max_connections=1))
    assert [peer.closed for peer in peers] == [False, True, True]


@in_loop
async def test_waiting_connections_are_bounded() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_connections=0), max_waiting=10)
    assert sum(Peer(limits).admitted for _ in range(100)) == 11


@in_loop
async def test_listener_has_its_own_limit() -> None:
    settings = ConnectionSettings(listeners={EXTERNAL: ListenerLimits(max_connections=1)})
    limits = ConnectionLimits(settings)
    first, second, other = Peer(limits), Peer(limits), Peer(limits, INTERNAL)
    assert (first.served, second.held, other.served) == (True, True, True)


@in_loop
async def test_inter_broker_listener_takes_the_place_of_the_least_recently_used_client() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_connections=2, protected_listener=INTERNAL))
    busy, idle = Peer(limits), Peer(limits)
    busy.last_activity = 9.0
    broker = Peer(limits, INTERNAL)
    assert (broker.served, busy.served, idle.closed) == (True, True, True)
    assert Peer(limits, INTERNAL).served
    assert busy.closed
    assert Peer(limits, INTERNAL).served, "without another connection to close, too"
    assert Peer(limits).held


@in_loop
async def test_connection_over_the_limit_per_ip_is_closed() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_per_ip=1, per_ip_overrides={"10.0.0.2": 2}))
    first, second = Peer(limits), Peer(limits)
    assert (first.served, second.closed, second.admitted) == (True, True, False)
    assert [Peer(limits, host="10.0.0.2").admitted for _ in range(3)] == [True, True, False]
    first.close()
    assert Peer(limits).served


@in_loop
async def test_connections_over_the_creation_rate_wait_in_order() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_creation_rate=40), windows=WINDOWS)
    peers = [Peer(limits) for _ in range(8)]
    assert [peer.served for peer in peers[:4]] == [True] * 4
    assert peers[-1].held
    served_before = sum(peer.served for peer in peers)
    assert served_before < 8
    await eventually(lambda: peers[served_before].served)
    await eventually(lambda: all(peer.served for peer in peers))


@in_loop
async def test_connection_over_the_rate_of_its_address_is_held_and_then_closed() -> None:
    limits = ConnectionLimits(windows=WINDOWS)
    limits.apply({quota_entity([("ip", None)]): {"connection_creation_rate": 20.0}})
    peers = [Peer(limits) for _ in range(3)]
    assert [peer.served for peer in peers] == [True, True, False]
    assert peers[2].held
    assert not peers[2].closed
    assert Peer(limits, host="10.0.0.2").served, "other addresses have a limit of their own"
    await eventually(lambda: peers[2].closed)
    await eventually(lambda: Peer(limits).served)


@in_loop
async def test_changed_quotas_end_the_mute_of_all_clients() -> None:
    limits = ConnectionLimits()
    peer = Peer(limits)
    limits.apply({})
    assert not peer.muted


@in_loop
async def test_closing_the_first_waiting_connection_lets_the_next_be_first() -> None:
    limits = ConnectionLimits(ConnectionSettings(max_creation_rate=10), windows=WINDOWS)
    peers = [Peer(limits) for _ in range(5)]
    waiting = [peer for peer in peers if peer.held]
    waiting[0].close()
    await eventually(lambda: all(peer.served for peer in waiting[1:]))
