"""The login of a connection as a state machine; the cases are those of Kafka's SaslAuthenticatorTest."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from moldau.base.clock import ManualClock
from moldau.base.errors import ErrorCode
from moldau.base.pool import InlinePool
from moldau.network.connection import CloseConnection
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS
from moldau.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.protocol.schema import Message, decode, encode_bytes
from moldau.security.principal import KafkaPrincipal
from moldau.security.sasl.mechanism import SaslServer
from moldau.security.sasl.plain import PlainServer, PlainUsers
from moldau.server.authentication.sasl import SaslAuthentication, SaslSettings
from moldau.server.dispatch.apis import served_apis
from moldau.server.dispatch.context import ListenerContext, RequestContext
from moldau.server.settings import BROKER
from tests.harness.wire.wire import api_key

MAX_RECEIVE, MAX_REQUEST = 1000, 100_000
GOOD, WRONG = b"\0alice\0secret", b"\0alice\0guess"
METADATA = MetadataRequest(topics=[])


class FakeConnection:
    """What a login uses of a connection."""

    peer_host = "10.0.0.1"

    def __init__(self) -> None:
        self.principal: KafkaPrincipal | None = None
        self.session_ends_at: float | None = None
        self.max_frame = MAX_RECEIVE

    def logged_in(self, principal: KafkaPrincipal) -> None:
        self.principal = principal

    def limit_frames(self, max_frame: int) -> None:
        self.max_frame = max_frame


class Expiring(PlainServer):
    """PLAIN whose credentials expire after 5 s."""

    session_lifetime_ms: int | None = 5000


class TwoSteps:
    """A mechanism with two tokens, evaluated in the pool."""

    blocking = True
    session_lifetime_ms: int | None = None
    principal = KafkaPrincipal("User", "alice")

    def __init__(self) -> None:
        self.tokens: list[bytes] = []

    @property
    def complete(self) -> bool:
        return len(self.tokens) == 2

    def evaluate(self, token: bytes) -> bytes:
        self.tokens.append(token)
        return b"challenge" if len(self.tokens) == 1 else b"done"


def versions(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=ErrorCode.INVALID_REQUEST if not request.client_software_name else ErrorCode.NONE
    )


@dataclass
class World:
    """One connection to a listener."""

    max_session_ms: Mapping[str, int] = field(default_factory=dict)
    delay_seconds: float = 0.0
    clock: ManualClock = field(default_factory=ManualClock)
    connection: Any = field(default_factory=FakeConnection)
    closed: bool = False

    def __post_init__(self) -> None:
        options = {"user_alice": "secret", "user_bob": "bobs"}
        users = PlainUsers(options, b"key")
        makers = {
            "PLAIN": lambda: PlainServer(users),
            "EXPIRING": lambda: Expiring(users),
            "TWO-STEPS": TwoSteps,
        }

        def create(mechanism: str, connection: Any) -> SaslServer:
            return makers[mechanism]()

        self.authentication = SaslAuthentication(
            SaslSettings(list(makers), MAX_RECEIVE, MAX_REQUEST, self.delay_seconds, self.max_session_ms),
            create,
            ListenerContext(
                "CLIENTS", BROKER, "SASL_PLAINTEXT", served_apis(BROKER), {ApiKey.API_VERSIONS: versions}
            ),
            self.clock,
            InlinePool(),
        )

    def frame(self, frame: bytes) -> bytes | None:
        """Send a frame; return the response without its size, None if it is an ordinary request."""
        response = self.authentication.intercept(self.connection, memoryview(frame))
        if response is None:
            return None
        assert response.pending is not None

        async def wait() -> bytes:
            return b"".join(await response.pending)  # type: ignore[misc]

        answer = asyncio.run(wait())
        self.closed = response.closes is not None and response.closes()
        return answer[4:]

    def call(self, request: Message, version: int) -> Any:
        key = api_key(request)
        header = encode_request_header(RequestHeader(key, version, 7, "test"))
        answer = self.frame(header + encode_bytes(request, version))
        if answer is None:
            return None
        assert answer, "the connection is closed without a response"
        _, start = decode_response_header(key, version, answer)
        return decode(APIS[key].response, answer, version, start)

    def versions(self, version: int = 4, name: str = "test") -> Any:
        request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
        return self.call(request, version)

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return self.call(SaslHandshakeRequest(mechanism=mechanism), version)

    def token(self, token: bytes = GOOD, version: int = 2) -> Any:
        return self.call(SaslAuthenticateRequest(auth_bytes=token), version)

    def log_in(self, mechanism: str = "PLAIN") -> Any:
        assert self.handshake(mechanism).error_code == ErrorCode.NONE
        return self.token()


@pytest.fixture
def world() -> World:
    return World()


# The first login.


def test_a_login_sets_the_principal_and_allows_large_frames(world: World) -> None:
    assert world.versions().error_code == ErrorCode.NONE
    answer = world.log_in()
    assert (answer.error_code, answer.error_message, answer.auth_bytes) == (0, "", b"")
    assert str(world.connection.principal) == "User:alice"
    assert (world.connection.max_frame, world.closed) == (MAX_REQUEST, False)


def test_the_handshake_may_be_the_first_request(world: World) -> None:
    assert world.handshake().mechanisms == ["PLAIN", "EXPIRING", "TWO-STEPS"]
    assert world.token().error_code == ErrorCode.NONE


def test_a_mechanism_of_several_steps_is_evaluated_in_the_pool(world: World) -> None:
    world.handshake("TWO-STEPS")
    assert world.token(b"one").auth_bytes == b"challenge"
    assert world.connection.principal is None
    assert world.token(b"two").auth_bytes == b"done"
    assert str(world.connection.principal) == "User:alice"


def test_handshake_version_0_is_followed_by_bare_tokens(world: World) -> None:
    assert world.handshake(version=0).error_code == ErrorCode.NONE
    assert world.frame(GOOD) == b""
    assert str(world.connection.principal) == "User:alice"


def test_a_wrong_bare_token_closes_without_a_response(world: World) -> None:
    world.handshake(version=0)
    assert world.frame(WRONG) == b""
    assert world.closed and world.connection.principal is None


# What is refused before a login.


def test_a_second_api_versions_closes_the_connection(world: World) -> None:
    world.versions()
    with pytest.raises(CloseConnection, match="second ApiVersions"):
        world.versions()


def test_a_second_api_versions_of_an_unsupported_version_closes(world: World) -> None:
    world.versions()
    header = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 99, 1, "test"))
    with pytest.raises(CloseConnection, match="second ApiVersions"):
        world.frame(header)


def test_a_refused_api_versions_does_not_count(world: World) -> None:
    header = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 99, 7, "test"))
    for _ in range(2):
        answer = world.frame(header)
        assert answer is not None and answer[4:6] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
    assert world.versions(name="").error_code == ErrorCode.INVALID_REQUEST
    assert world.versions().error_code == ErrorCode.NONE
    assert world.log_in().error_code == ErrorCode.NONE


@pytest.mark.parametrize("after_handshake", [False, True])
def test_other_requests_before_a_login_close_the_connection(world: World, after_handshake: bool) -> None:
    if after_handshake:
        world.handshake()
        answer = world.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE and world.closed
        return
    with pytest.raises(CloseConnection, match="before the SASL handshake"):
        world.call(METADATA, 12)


def test_authenticate_before_the_handshake_closes(world: World) -> None:
    with pytest.raises(CloseConnection, match="before the SASL handshake"):
        world.token()


def test_an_unsupported_version_of_the_handshake_closes(world: World) -> None:
    header = encode_request_header(RequestHeader(ApiKey.SASL_HANDSHAKE, 99, 1, "test"))
    with pytest.raises(CloseConnection, match="version 99 is not served"):
        world.frame(header + encode_bytes(SaslHandshakeRequest(mechanism="PLAIN"), 1))


@pytest.mark.parametrize("frame", [b"", b"\x00", b"\x60\x82garbage", bytes(8)], ids=repr)
def test_garbage_closes_the_connection(world: World, frame: bytes) -> None:
    with pytest.raises(CloseConnection):
        world.frame(frame)


def test_a_frame_over_sasl_server_max_receive_size_closes(world: World) -> None:
    world.handshake()
    assert world.token(b"\0alice\0" + b"x" * (MAX_RECEIVE - 100)).error_code == 58
    other = World()
    other.handshake()
    with pytest.raises(CloseConnection, match=r"sasl\.server\.max\.receive\.size"):
        other.token(b"\0alice\0" + b"x" * MAX_RECEIVE)


def test_an_unknown_mechanism_is_answered_with_the_enabled_ones(world: World) -> None:
    answer = world.handshake("MAGIC")
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert "PLAIN" in answer.mechanisms
    assert world.closed


@pytest.mark.parametrize("mechanism", ["plain", "PLAIN ", ""])
def test_mechanisms_are_compared_exactly(world: World, mechanism: str) -> None:
    assert world.handshake(mechanism).error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM


def test_wrong_credentials_are_answered_and_close(world: World) -> None:
    world.handshake()
    answer = world.token(WRONG)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert world.closed and world.connection.principal is None


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
    ],
)
def test_every_failure_has_kafkas_words(world: World, token: bytes, message: str) -> None:
    world.handshake()
    assert world.token(token).error_message == message


def test_the_answer_to_a_failed_login_is_delayed() -> None:
    world = World(delay_seconds=0.05)
    world.handshake()

    async def waits() -> bool:
        header = encode_request_header(RequestHeader(ApiKey.SASL_AUTHENTICATE, 2, 7, "test"))
        frame = header + encode_bytes(SaslAuthenticateRequest(auth_bytes=WRONG), 2)
        response = world.authentication.intercept(world.connection, memoryview(frame))
        assert response is not None and response.pending is not None
        begin = asyncio.get_running_loop().time()
        await response.pending
        return asyncio.get_running_loop().time() - begin >= 0.05

    assert asyncio.run(waits())


def test_a_failed_login_is_logged_without_secrets(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    world.handshake()
    world.token(WRONG)
    assert "Failed authentication with /10.0.0.1 (CLIENTS)" in caplog.text
    assert "guess" not in caplog.text and "secret" not in caplog.text


def test_a_client_cannot_forge_a_line_of_the_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world.handshake("X\nuser root logged in")
    assert r"X\nuser root" in caplog.text


def test_frames_that_follow_a_disconnect_do_not_enter_a_running_exchange(world: World) -> None:
    header = encode_request_header(RequestHeader(ApiKey.SASL_HANDSHAKE, 1, 7, "test"))
    frame = memoryview(header + encode_bytes(SaslHandshakeRequest(mechanism="PLAIN"), 1))
    response = world.authentication.intercept(world.connection, frame)
    assert response is not None
    with pytest.raises(CloseConnection, match="not complete"):
        world.authentication.intercept(world.connection, frame)
    asyncio.run(_ignore(response.pending))


async def _ignore(pending: Any) -> None:
    await pending


# Sessions (KIP-368).


def test_without_limits_a_session_does_not_end(world: World) -> None:
    assert world.log_in().session_lifetime_ms == 0
    assert world.connection.session_ends_at is None


@pytest.mark.parametrize(
    ("mechanism", "limit_ms", "lifetime_ms"),
    [("PLAIN", 3000, 3000), ("EXPIRING", 0, 5000), ("EXPIRING", 3000, 3000), ("EXPIRING", 9000, 5000)],
)
def test_the_lifetime_is_the_smaller_of_credential_and_limit(
    mechanism: str, limit_ms: int, lifetime_ms: int
) -> None:
    world = World({mechanism: limit_ms})
    assert world.log_in(mechanism).session_lifetime_ms == lifetime_ms
    assert world.connection.session_ends_at == world.clock.monotonic() + lifetime_ms / 1000


def test_requests_are_served_until_the_session_ends() -> None:
    world = World({"PLAIN": 3000})
    world.log_in()
    world.clock.advance(2999)
    assert world.call(METADATA, 12) is None
    world.clock.advance(2)
    with pytest.raises(CloseConnection, match="session has ended"):
        world.call(METADATA, 12)


def test_a_client_reauthenticates_even_after_the_end() -> None:
    world = World({"PLAIN": 3000})
    world.log_in()
    world.clock.advance(10_000)
    assert world.log_in().session_lifetime_ms == 3000
    assert world.call(METADATA, 12) is None


def test_reauthentication_is_possible_once_a_second() -> None:
    world = World({"PLAIN": 3000})
    world.log_in()
    assert world.log_in().error_code == ErrorCode.NONE
    assert world.handshake() is None, "too early: an ordinary request, which is answered with error 34"
    world.clock.advance(1000)
    assert world.log_in().error_code == ErrorCode.NONE


def test_reauthentication_keeps_the_principal() -> None:
    world = World({"PLAIN": 3000})
    world.log_in()
    world.handshake()
    answer = world.token(b"\0bob\0bobs")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert (
        answer.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    assert world.closed
    assert str(world.connection.principal) == "User:alice"


def test_reauthentication_keeps_the_mechanism() -> None:
    world = World({"PLAIN": 3000})
    world.log_in()
    assert world.handshake("EXPIRING").error_code == ErrorCode.NONE
    assert world.frame(b"anything") == b""
    assert world.closed


def test_a_failed_reauthentication_closes() -> None:
    world = World({"PLAIN": 3000})
    world.log_in()
    world.handshake()
    assert world.token(WRONG).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert world.closed


def test_after_a_login_without_session_a_handshake_is_an_ordinary_request(world: World) -> None:
    world.log_in()
    # The dispatcher does not ask: the principal is known, and the session does not end.
    assert world.connection.principal is not None and world.connection.session_ends_at is None


def test_disconnected_clients_are_forgotten(world: World) -> None:
    for _ in range(3):
        connection: Any = FakeConnection()
        world.connection = connection
        world.handshake()
        world.authentication.disconnected(connection)
    logins: Sequence[Any] = list(world.authentication._logins)
    assert logins == []
