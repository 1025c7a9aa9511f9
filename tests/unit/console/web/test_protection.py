"""Which requests are refused by their Host and Origin headers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moldau.console.settings import ConsoleSettings
from moldau.console.web.protection import Protection

LOCAL = ConsoleSettings.from_properties(
    {"bootstrap.servers": "localhost:9092", "allowed.hosts": "kafka.example"}
)
ANYWHERE = ConsoleSettings.from_properties(
    {
        "bootstrap.servers": "localhost:9092",
        "listeners": "http://0.0.0.0:8080",
        "client.security.protocol": "SASL_SSL",
        "client.sasl.mechanism": "SCRAM-SHA-512",
    }
)


def refusal(settings: ConsoleSettings, method: str = "GET", **headers: str) -> str | None:
    async def never(*_: Any) -> None:
        raise AssertionError

    found = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Protection(never, settings).refusal({"method": method, "path": "/", "headers": found})


@pytest.mark.parametrize(
    "host", ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "kafka.example", "LOCALHOST"]
)
def test_own_names_are_accepted(host: str) -> None:
    assert refusal(LOCAL, host=host) is None


@pytest.mark.parametrize(
    "host", ["evil.example:8080", "", "192.168.1.5:8080", "localhost.evil.example", "[::1"]
)
def test_foreign_names_are_refused(host: str) -> None:
    assert refusal(LOCAL, host=host) is not None


def test_a_console_for_other_machines_is_reached_by_any_address_but_not_any_name() -> None:
    assert refusal(ANYWHERE, host="192.168.1.5:8080") is None
    assert refusal(ANYWHERE, host="evil.example") is not None


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:9999", "http://localhost:8080.evil.example"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_foreign_origins_are_refused(method: str, origin: str) -> None:
    assert refusal(LOCAL, method, host="localhost:8080", origin=origin) is not None


def test_own_pages_and_scripts_may_send_changes() -> None:
    assert refusal(LOCAL, "POST", host="localhost:8080", origin="http://localhost:8080") is None
    assert refusal(LOCAL, "POST", host="localhost:8080") is None
    assert refusal(LOCAL, "POST", host="localhost:8080", sec_fetch_site="same-origin") is None
    assert refusal(LOCAL, "POST", host="localhost:8080", sec_fetch_site="cross-site") is not None


def test_every_response_has_a_strict_policy() -> None:
    sent: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        sent.append(dict(message["headers"]))

    scope = {"method": "GET", "path": "/", "headers": [(b"host", b"localhost")]}
    asyncio.run(Protection(application, LOCAL)(scope, None, send))  # type: ignore[arg-type]
    policy = sent[0][b"content-security-policy"]
    assert b"default-src 'self'" in policy and b"unsafe" not in policy
    assert sent[0][b"x-frame-options"] == b"DENY"
