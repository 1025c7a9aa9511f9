"""When sessions end, and how many there are."""

from __future__ import annotations

import asyncio

import pytest

from moldau.base.clock import ManualClock
from moldau.console.login.roles import Role
from moldau.console.settings import ConsoleSettings
from moldau.console.web import sessions
from moldau.console.web.call import Refused
from moldau.console.web.sessions import Session, Sessions

SETTINGS = ConsoleSettings.from_properties(
    {
        "bootstrap.servers": "localhost:9092",
        "login": "oidc",
        "oidc.issuer.url": "https://id.example",
        "oidc.client.id": "console",
        "session.timeout.ms": "10000",
        "session.lifetime.ms": "60000",
    }
)


def test_a_session_ends_when_it_is_not_used() -> None:
    clock = ManualClock()
    found = Sessions(SETTINGS, {}, clock)
    session = Session("ann", Role.VIEWER)
    cookie = asyncio.run(found.begin(session))
    for _ in range(3):
        clock.advance(9_000)
        assert found.find(cookie) is session
    clock.advance(9_000)
    # A page that updates itself does not use the session.
    assert found.find(cookie, uses=False) is session
    clock.advance(2_000)
    assert found.find(cookie) is None
    assert found.is_over(session) and not session.ended
    asyncio.run(found.sweep())
    assert session.ended


def test_a_session_has_a_lifetime() -> None:
    clock = ManualClock()
    found = Sessions(SETTINGS, {}, clock)
    cookie = asyncio.run(found.begin(Session("ann")))
    for _ in range(8):
        clock.advance(7_500)
        assert found.find(cookie) is not None
    clock.advance(1)
    assert found.find(cookie) is None


def test_the_oldest_sessions_of_a_user_end_before_those_of_others() -> None:
    found = Sessions(SETTINGS, {}, ManualClock())

    async def begin(user: str) -> str:
        return await found.begin(Session(user))

    other = asyncio.run(begin("bob"))
    cookies = [asyncio.run(begin("ann")) for _ in range(sessions._MAX_OF_USER + 3)]
    known = [found.find(cookie) is not None for cookie in cookies]
    assert known == [False] * 3 + [True] * sessions._MAX_OF_USER
    assert found.find(other) is not None


def test_the_number_of_sessions_is_bounded() -> None:
    clock = ManualClock()
    found = Sessions(SETTINGS, {}, clock)

    async def begin_all() -> None:
        for number in range(sessions._MAX_SESSIONS):
            await found.begin(Session(f"user-{number}"))
        with pytest.raises(Refused, match="Too many users"):
            await found.begin(Session("one more"))

    asyncio.run(begin_all())
    clock.advance(11_000)
    asyncio.run(found.begin(Session("one more")))


def test_an_unknown_cookie_has_no_session() -> None:
    found = Sessions(SETTINGS, {}, ManualClock())
    assert found.find(None) is found.find("") is found.find("x") is None
