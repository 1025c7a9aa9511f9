"""HTTP listeners: when they listen, whom they let in, and what bounds them; over real sockets."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvloop

from moldau.base.clock import SystemClock
from moldau.base.errors import KafkaError
from moldau.config.definition import ConfigError
from moldau.http.asgi import CREDENTIALS, PRINCIPAL, Receive, Scope, Send, send_json
from moldau.http.errors import ApiError
from moldau.http.requests import parse_json, read_body
from moldau.http.server import HttpServer
from moldau.http.settings import HttpSettings
from moldau.security.tls.authority import Authority


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Report who calls; fail on demand."""
    if scope["path"] == "/refused":
        raise ApiError(422, 42201, "Not a schema")
    if scope["path"] == "/bug":
        raise ZeroDivisionError("secret detail")
    body = await read_body(scope, receive, 100)
    credentials = scope[CREDENTIALS]
    await send_json(
        send,
        200,
        {
            "principal": str(scope[PRINCIPAL]),
            "user": credentials.user if credentials else None,
            "body": parse_json(body) if body else None,
        },
    )


@asynccontextmanager
async def opened(properties: Mapping[str, str]) -> AsyncIterator[HttpServer]:
    settings = HttpSettings.from_properties({"listeners": "http://127.0.0.1:0", **properties}, default_port=0)
    server = HttpServer(settings, SystemClock())
    server.bind()
    try:
        await server.open(application)
        yield server
    finally:
        await server.close()


def port_of(server: HttpServer) -> int:
    return int(server.urls[0].rpartition(":")[2])


async def exchange(server: HttpServer, text: str, context: ssl.SSLContext | None = None) -> str:
    """Send the bytes of a request and return everything until the server closes the connection."""
    reader, writer = await asyncio.open_connection(
        "localhost" if context else "127.0.0.1", port_of(server), ssl=context
    )
    try:
        writer.write(text.encode())
        return (await reader.read()).decode()
    finally:
        writer.close()


def request(path: str = "/", *headers: str, method: str = "GET", body: str = "") -> str:
    lines = [f"{method} {path} HTTP/1.1", "host: x", "connection: close", *headers]
    if body:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join(lines) + "\r\n\r\n" + body


def basic(user: str, password: str) -> str:
    return "authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


def test_a_bound_port_refuses_connections_until_it_is_opened() -> None:
    async def check() -> None:
        settings = HttpSettings.from_properties({"listeners": "http://127.0.0.1:0"}, default_port=0)
        server = HttpServer(settings, SystemClock())
        server.bind()
        port = port_of(server)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        await server.open(application)
        assert "200 OK" in await exchange(server, request())
        taken = HttpSettings.from_properties({"port": str(port)}, default_port=0)
        with pytest.raises(KafkaError, match=f"Cannot listen on http://127.0.0.1:{port}: Address already"):
            HttpServer(taken, SystemClock()).bind()
        await server.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)

    run(check)


def test_errors_are_json_and_bugs_do_not_show_their_text() -> None:
    async def check() -> None:
        async with opened({}) as server:
            refused = await exchange(server, request("/refused"))
            assert refused.startswith("HTTP/1.1 422 ")
            assert refused.endswith('{"error_code":42201,"message":"Not a schema"}')
            bug = await exchange(server, request("/bug"))
            assert bug.startswith("HTTP/1.1 500 ")
            assert bug.endswith('{"error_code":500,"message":"Internal Server Error"}')
            not_json = await exchange(server, request(method="POST", body='{"a":'))
            assert not_json.startswith("HTTP/1.1 400 ")
            assert "not JSON" in not_json
            not_utf8 = await exchange(server, request(method="POST", body="NaN"))
            assert "NaN is not a JSON value" in not_utf8

    run(check)


def test_bodies_and_headers_are_bounded() -> None:
    async def check() -> None:
        async with opened({}) as server:
            large = await exchange(server, request(method="POST", body='"' + "a" * 99 + '"'))
            assert large.startswith("HTTP/1.1 413 ")
            chunked = (
                request("/", "transfer-encoding: chunked", method="POST") + "65\r\n" + "a" * 101 + "\r\n"
            )
            assert (await exchange(server, chunked)).startswith("HTTP/1.1 413 ")
            headers = await exchange(server, "GET / HTTP/1.1\r\nx: " + "a" * 100_000)
            assert headers.startswith("HTTP/1.1 431 ")

    run(check)


def test_the_number_of_connections_is_bounded() -> None:
    async def check() -> None:
        async with opened({"server.connection.limit": "2"}) as server:
            kept = [await asyncio.open_connection("127.0.0.1", port_of(server)) for _ in range(2)]
            for _, writer in kept:
                writer.write(request().replace("connection: close\r\n", "").encode())
            for reader, _ in kept:
                assert b"200" in await reader.readline()
            refused, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
            try:
                assert await refused.read() == b""
            except ConnectionResetError:
                pass
            writer.close()
            for _, writer in kept:
                writer.close()

    run(check)


def test_basic_authentication_and_roles(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("alice: secret,admin\nbob: OBF:1v2j1uum1xtv1zej1zer1xtn1uvk1v1v,reader\n")
    properties = {
        "authentication.method": "BASIC",
        "authentication.realm": "Registry",
        "authentication.roles": "admin",
        "authentication.users.file": str(users),
        "authentication.skip.paths": "/open",
        "authentication.user.carol": "pass word,admin",
    }

    async def check() -> None:
        async with opened(properties) as server:
            missing = await exchange(server, request())
            assert missing.startswith("HTTP/1.1 401 ")
            assert 'www-authenticate: Basic realm="Registry"' in missing
            assert '"principal":"User:alice","user":"alice"' in await exchange(
                server, request("/", basic("alice", "secret"))
            )
            assert '"principal":"User:carol"' in await exchange(
                server, request("/", basic("carol", "pass word"))
            )
            assert " 401 " in await exchange(server, request("/", basic("alice", "Secret")))
            assert " 401 " in await exchange(server, request("/", basic("nobody", "")))
            assert " 401 " in await exchange(server, request("/", "authorization: Basic !!!"))
            assert " 403 " in await exchange(server, request("/", basic("bob", "password")))
            assert "User:ANONYMOUS" in await exchange(server, request("/open"))

    run(check)


def test_unverified_credentials_are_passed_on() -> None:
    async def check() -> None:
        async with opened({}) as server:
            answer = await exchange(server, request("/", basic("alice", "any")))
            assert '"principal":"User:ANONYMOUS","user":"alice"' in answer

    run(check)


def test_cors(tmp_path: Path) -> None:
    properties = {
        "access.control.allow.origin": "https://ui.example",
        "access.control.allow.methods": "GET,PUT",
    }

    async def check() -> None:
        async with opened(properties) as server:
            preflight = await exchange(
                server,
                request(
                    "/x", "origin: https://ui.example", "access-control-request-method: PUT", method="OPTIONS"
                ),
            )
            assert preflight.startswith("HTTP/1.1 200 ")
            assert "access-control-allow-methods: GET,PUT" in preflight
            answer = await exchange(server, request("/", "origin: https://ui.example"))
            assert "access-control-allow-origin: https://ui.example" in answer
            assert "access-control" not in await exchange(
                server, request("/", "origin: https://evil.example")
            )

    run(check)


def test_tls_and_the_principal_of_a_certificate(tmp_path: Path) -> None:
    authority = Authority.create("Unit test CA")
    server_key = authority.issue("server", ("localhost",)).write_pkcs12(tmp_path / "server.p12", "secret")
    trust = authority.write_trust_pem(tmp_path / "trust.pem")
    alice = authority.issue("alice", ()).write_pem(tmp_path / "alice.pem")
    properties = {
        "listeners": "https://localhost:0",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(server_key),
        "ssl.keystore.password": "secret",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trust),
        "ssl.client.authentication": "REQUESTED",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]*).*$/$1/",
    }

    async def check() -> None:
        context = ssl.create_default_context(cafile=str(trust))
        async with opened(properties) as server:
            assert "User:ANONYMOUS" in await exchange(server, request(), context)
            context.load_cert_chain(alice)
            assert "User:alice" in await exchange(server, request(), context)
        async with opened({**properties, "ssl.client.authentication": "REQUIRED"}) as server:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                answer = await exchange(server, request(), ssl.create_default_context(cafile=str(trust)))
                raise ConnectionError(answer)

    run(check)


@pytest.mark.parametrize("run_loop", [asyncio.run, uvloop.run])
def test_changed_key_stores_are_used_by_new_connections(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, run_loop: Callable[[Any], None]
) -> None:
    first, second = Authority.create("first CA"), Authority.create("second CA")
    store = first.issue("server", ("localhost",)).write_pem(tmp_path / "server.pem")
    trusted = [each.write_trust_pem(tmp_path / f"{n}.pem") for n, each in enumerate((first, second))]
    before, after = (ssl.create_default_context(cafile=str(each)) for each in trusted)
    properties = {
        "listeners": "https://localhost:0,http://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
    }

    async def accepted(server: HttpServer, context: ssl.SSLContext) -> bool:
        try:
            return "200 OK" in await exchange(server, request(), context)
        except ssl.SSLCertVerificationError:
            return False

    async def check() -> None:
        async with opened(properties) as server:
            reader, writer = await asyncio.open_connection("localhost", port_of(server), ssl=before)
            assert not await accepted(server, after)
            store.write_text("half of a fi")
            while "keep their certificates" not in caplog.text:
                await asyncio.sleep(0.01)
            assert await accepted(server, before)
            second.issue("server", ("localhost",)).write_pem(tmp_path / "new.pem").replace(store)
            while not await accepted(server, after):
                await asyncio.sleep(0.01)
            assert not await accepted(server, before)
            # An open connection is still served.
            writer.write(request().encode())
            assert b"200 OK" in await reader.read()
            writer.close()
            assert len(server.urls) == 2

    async def bounded() -> None:
        await asyncio.wait_for(check(), 60)

    run_loop(bounded())


def test_a_client_that_does_not_complete_its_handshake_is_disconnected(tmp_path: Path) -> None:
    key = Authority.create("Unit test CA").issue("server", ("localhost",)).write_pem(tmp_path / "server.pem")
    properties = {
        "listeners": "https://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(key),
        "idle.timeout.ms": "1000",
    }

    async def check() -> None:
        async with opened(properties) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
            with suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(), 20) == b""
            writer.close()

    run(check)


def test_a_running_request_is_finished_before_the_end() -> None:
    async def check() -> None:
        settings = HttpSettings.from_properties({"listeners": "http://127.0.0.1:0"}, default_port=0)
        server = HttpServer(settings, SystemClock())
        server.bind()
        arrived, finish = asyncio.Event(), asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            arrived.set()
            await finish.wait()
            await send_json(send, 200, "done")

        await server.open(slow)
        answer = asyncio.ensure_future(exchange(server, request()))
        await arrived.wait()
        closing = asyncio.ensure_future(server.close())
        await asyncio.sleep(0)
        finish.set()
        assert (await answer).endswith('"done"')
        await closing

    run(check)


def test_a_request_that_lasts_too_long_at_the_end_is_answered() -> None:
    async def check() -> None:
        properties = {"listeners": "http://127.0.0.1:0", "shutdown.graceful.ms": "10"}
        server = HttpServer(HttpSettings.from_properties(properties, default_port=0), SystemClock())
        server.bind()
        arrived = asyncio.Event()

        async def endless(scope: Scope, receive: Receive, send: Send) -> None:
            arrived.set()
            await asyncio.Event().wait()

        await server.open(endless)
        answer = asyncio.ensure_future(exchange(server, request()))
        await arrived.wait()
        await server.close()
        assert (await answer).startswith("HTTP/1.1 503 ") and "shutting down" in await answer

    run(check)


def test_headers_that_are_never_completed_end_the_connection() -> None:
    async def check() -> None:
        properties = {"listeners": "http://127.0.0.1:0", "idle.timeout.ms": "1000"}
        server = HttpServer(HttpSettings.from_properties(properties, default_port=0), SystemClock())
        server.bind()

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await send_json(send, 200, "done")

        await server.open(application)
        parts = urlsplit(server.urls[0])
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(b"GET / HTTP/1.1\r\nHost")
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        await server.close()

    run(check)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"listeners": "ftp://x:1"}, "a listener is http://host:port"),
        ({"listeners": "http://x"}, "a listener is http://host:port"),
        ({"idle.timeout.ms": "soon"}, "Not a number"),
        ({"authentication.method": "DIGEST"}, "use NONE, BASIC, BEARER"),
        ({"authentication.method": "BASIC"}, "needs users"),
        ({"authentication.method": "BASIC", "authentication.users.file": "/nowhere"}, "cannot be read"),
        ({"listeners": "https://localhost:0"}, "needs a certificate"),
        ({"listeners": "https://localhost:0", "ssl.client.authentication": "maybe"}, "must be one of"),
    ],
)
def test_invalid_settings_are_named(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        HttpServer(HttpSettings.from_properties(properties, default_port=8081), SystemClock())


def test_without_settings_only_this_machine_can_connect() -> None:
    settings = HttpSettings.from_properties({}, default_port=8081)
    assert [listener.url for listener in settings.listeners] == ["http://127.0.0.1:8081"]
    assert socket.gethostbyname("localhost") == "127.0.0.1"
