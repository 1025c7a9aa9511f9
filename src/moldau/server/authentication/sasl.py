"""The SASL exchange of a connection, as Kafka's SaslServerAuthenticator does it.

States. A new connection may send one valid ApiVersions, then SaslHandshake with a mechanism, then tokens:
as SaslAuthenticate requests after handshake version 1, as bare frames after version 0. Any other request
closes the connection. When the exchange is complete, requests are served with the principal.

Sessions (KIP-368). With `connections.max.reauth.ms` or credentials that expire, a session ends: a
SaslHandshake begins a new exchange, with the same mechanism and principal and at most once a second; any
other request after the end closes the connection.

Failures. The answer to a failed login is delayed by `connection.failed.authentication.delay.ms`, and the
connection is closed after it. Frames are limited to `sasl.server.max.receive.size` until the login succeeds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.log_throttle import Repeats
from moldau.base.pool import Pool
from moldau.base.printable import one_line
from moldau.network.connection import CloseConnection, Connection
from moldau.network.responses import Parts, Response
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.headers import RequestHeader
from moldau.protocol.messages.api_versions import ApiVersionsResponse
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from moldau.protocol.schema import Message
from moldau.security.principal import ANONYMOUS, KafkaPrincipal
from moldau.security.sasl.mechanism import SaslError, SaslServer
from moldau.server.authentication.login_counts import LoginCounts, LoginOutcome
from moldau.server.dispatch.audit import login_failed
from moldau.server.dispatch.context import ListenerContext, RequestContext
from moldau.server.dispatch.dispatcher import failure
from moldau.server.dispatch.frames import decode_frame, encode_frame, not_served

logger = logging.getLogger(__name__)

#: Re-authentication begins at most once in this time.
_REAUTHENTICATION_INTERVAL_SECONDS = 1.0

#: Begins an exchange with a mechanism for a client.
CreateServer = Callable[[str, Connection], SaslServer]


@dataclass(frozen=True, slots=True)
class SaslSettings:
    mechanisms: Sequence[str]
    max_receive_size: int
    max_request_size: int
    failure_delay_seconds: float
    #: `connections.max.reauth.ms` by mechanism; 0: sessions do not end.
    max_session_ms: Mapping[str, int]


class _State(Enum):
    VERSIONS_OR_HANDSHAKE = auto()
    HANDSHAKE = auto()
    AUTHENTICATE = auto()
    #: A re-authentication asked for another mechanism; the next frame fails.
    BAD_MECHANISM = auto()
    FAILED = auto()


class _LoginRefused(Exception):
    """The login failed; `response`, if any, is sent before the connection is closed."""

    def __init__(self, reason: str, header: RequestHeader | None, response: Message | None) -> None:
        super().__init__(reason)
        self.header = header
        self.response = response


@dataclass(slots=True)
class _Login:
    """The login of one connection, and the exchange in progress."""

    state: _State | None = _State.VERSIONS_OR_HANDSHAKE
    mechanism: str = ""
    exchange: SaslServer | None = None
    #: Whether tokens are sent in SaslAuthenticate requests.
    with_headers: bool = False
    #: The principal and mechanism before a re-authentication.
    previous: tuple[KafkaPrincipal, str] | None = None
    begun_at: float = float("-inf")
    bad_mechanism: str = ""
    #: Whether a frame is being handled.
    busy: bool = False

    @property
    def activity(self) -> str:
        return "authentication" if self.previous is None else "re-authentication"


class SaslAuthentication:
    """The logins of one listener."""

    def __init__(
        self,
        settings: SaslSettings,
        create_server: CreateServer,
        listener: ListenerContext,
        clock: Clock,
        pool: Pool,
        logins: LoginCounts | None = None,
    ) -> None:
        self._settings = settings
        self._create_server = create_server
        self._listener = listener
        self._clock = clock
        self._pool = pool
        self._counts = logins or LoginCounts()
        self._logins: dict[Connection, _Login] = {}
        #: Failed logins are logged at most once a second for each reason and host.
        self._repeats = Repeats(interval_s=1.0)

    def intercept(self, connection: Connection, frame: memoryview) -> Response | None:
        login = self._logins.get(connection)
        if login is None:
            login = self._logins[connection] = _Login()
        if login.state is None and not self._begins_again(connection, login, frame):
            return None
        if login.busy:
            # Only after a disconnect: otherwise a connection waits for the response to its last frame.
            raise CloseConnection("the login is not complete")
        if len(frame) > self._settings.max_receive_size:
            raise CloseConnection("a SASL frame is larger than sasl.server.max.receive.size")
        login.busy = True
        return Response(
            pending=self._step(connection, login, bytes(frame)), closes=lambda: login.state is _State.FAILED
        )

    def disconnected(self, connection: Connection) -> None:
        self._logins.pop(connection, None)

    # Sessions.

    def _begins_again(self, connection: Connection, login: _Login, frame: memoryview) -> bool:
        """Return whether the frame begins a re-authentication; close a connection whose session has ended."""
        ends_at = connection.session_ends_at
        if ends_at is None:
            return False
        now = self._clock.monotonic()
        is_handshake = int.from_bytes(frame[:2], "big") == ApiKey.SASL_HANDSHAKE
        if is_handshake and now - login.begun_at >= _REAUTHENTICATION_INTERVAL_SECONDS:
            login.previous = (connection.principal or ANONYMOUS, login.mechanism)
            login.begun_at = now
            login.state = _State.HANDSHAKE
            return True
        if now > ends_at:
            self._counts.add(self._listener.name, LoginOutcome.EXPIRED)
            raise CloseConnection("the SASL session has ended and the client did not re-authenticate")
        return False

    def _completed(self, connection: Connection, login: _Login, exchange: SaslServer) -> int:
        """Take over the principal; return the session's lifetime in milliseconds, 0 if it does not end."""
        if login.previous is not None and login.previous[0][:2] != exchange.principal[:2]:
            before, after = login.previous[0], exchange.principal
            raise SaslError(
                "Cannot change principals during re-authentication from "
                f"{before.type}.{before.name}: {after.type}.{after.name}"
            )
        credential_ms = exchange.session_lifetime_ms
        limit_ms = self._settings.max_session_ms.get(login.mechanism, 0)
        lifetimes = [max(0, credential_ms)] if credential_ms is not None else []
        lifetimes += [limit_ms] if limit_ms > 0 else []
        lifetime_ms = min(lifetimes, default=0)
        connection.logged_in(exchange.principal)
        connection.session_ends_at = self._clock.monotonic() + lifetime_ms / 1000 if lifetimes else None
        connection.limit_frames(self._settings.max_request_size)
        login.state, login.exchange = None, None
        again = login.previous is not None
        outcome = LoginOutcome.REAUTHENTICATED if again else LoginOutcome.SUCCESSFUL
        self._counts.add(self._listener.name, outcome)
        return lifetime_ms

    # The exchange.

    async def _step(self, connection: Connection, login: _Login, frame: bytes) -> Parts:
        try:
            if login.state is _State.BAD_MECHANISM:
                raise _LoginRefused(login.bad_mechanism, None, None)
            if login.state is _State.AUTHENTICATE:
                return await self._authenticate(connection, login, frame)
            return self._handshake(connection, login, frame)
        except _LoginRefused as refused:
            login.state = _State.FAILED
            again = login.previous is not None
            outcome = LoginOutcome.REAUTHENTICATION_FAILED if again else LoginOutcome.FAILED
            self._counts.add(self._listener.name, outcome)
            shown = self._repeats.refusal(connection.peer_host, str(refused))
            if shown is not None:
                logger.info(
                    "Failed %s with /%s (%s) (%s)",
                    login.activity,
                    connection.peer_host,
                    self._listener.name,
                    one_line(shown),
                )
            cause = refused.__cause__
            reason = cause.reason if isinstance(cause, SaslError) else str(refused)
            login_failed(self._listener.name, connection.peer_host, login.mechanism, reason)
            await asyncio.sleep(self._settings.failure_delay_seconds)
            if refused.header is None:
                return ()
            return encode_frame(refused.header, refused.response)
        finally:
            login.busy = False

    def _handshake(self, connection: Connection, login: _Login, frame: bytes) -> Parts:
        header, served, request = decode_frame(self._listener.apis, memoryview(frame))
        if header.api_key not in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE):
            raise CloseConnection(
                f"a request of API {header.api_key} came before the SASL handshake; the client uses another "
                "security.protocol, or it is not a Kafka client"
            )
        if header.api_key == ApiKey.API_VERSIONS and login.state is not _State.VERSIONS_OR_HANDSHAKE:
            raise CloseConnection("a second ApiVersions request came before the SASL handshake")
        if request is None:
            return not_served(served, header)
        if isinstance(request, SaslHandshakeRequest):
            return self._choose_mechanism(connection, login, header, request)
        return self._versions(connection, login, header, request)

    def _versions(
        self, connection: Connection, login: _Login, header: RequestHeader, request: Message
    ) -> Parts:
        context = RequestContext(
            header.api_key,
            header.api_version,
            header.client_id,
            self._listener,
            ANONYMOUS,
            connection.peer_host,
            connection,
            header.correlation_id,
        )
        response = self._listener.handlers[ApiKey.API_VERSIONS](context, request)
        if not isinstance(response, ApiVersionsResponse):
            raise TypeError("ApiVersions is answered at once")
        if response.error_code == ErrorCode.NONE:
            login.state = _State.HANDSHAKE
        return encode_frame(header, response)

    def _choose_mechanism(
        self, connection: Connection, login: _Login, header: RequestHeader, request: SaslHandshakeRequest
    ) -> Parts:
        login.with_headers = header.api_version >= 1
        mechanisms = list(self._settings.mechanisms)
        if request.mechanism not in mechanisms:
            if login.previous is not None:
                raise CloseConnection(f"re-authentication with unknown mechanism {request.mechanism}")
            refusal = SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=mechanisms
            )
            raise _LoginRefused(f"Unsupported SASL mechanism {request.mechanism}", header, refusal)
        if login.previous is not None and login.previous[1] != request.mechanism:
            login.state = _State.BAD_MECHANISM
            login.bad_mechanism = (
                f"SASL mechanism '{request.mechanism}' requested by client is not supported for "
                f"re-authentication of mechanism '{login.previous[1]}'"
            )
        else:
            login.mechanism = request.mechanism
            login.exchange = self._create_server(request.mechanism, connection)
            login.state = _State.AUTHENTICATE
        return encode_frame(header, SaslHandshakeResponse(mechanisms=mechanisms))

    async def _authenticate(self, connection: Connection, login: _Login, frame: bytes) -> Parts:
        if not login.with_headers:
            try:
                answer, _ = await self._evaluate(connection, login, frame)
            except SaslError as error:
                raise _LoginRefused(self._words(login, error), None, None) from error
            return [len(answer).to_bytes(4, "big"), answer]
        header, served, request = decode_frame(self._listener.apis, memoryview(frame))
        if request is None or served is None:
            raise CloseConnection(f"API {header.api_key} version {header.api_version} is not served here")
        if not isinstance(request, SaslAuthenticateRequest):
            reason = f"Unexpected Kafka request of type {served.api.name} during SASL authentication."
            illegal = KafkaError(ErrorCode.ILLEGAL_SASL_STATE, reason)
            raise _LoginRefused(reason, header, failure(served, header.api_version, request, illegal))
        try:
            answer, lifetime_ms = await self._evaluate(connection, login, request.auth_bytes)
        except SaslError as error:
            words = self._words(login, error)
            refusal = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=words
            )
            raise _LoginRefused(words, header, refusal) from error
        response = SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=lifetime_ms)
        return encode_frame(header, response)

    async def _evaluate(self, connection: Connection, login: _Login, token: bytes) -> tuple[bytes, int]:
        """Return the answer to a token, and the lifetime of the session if that completes the exchange."""
        exchange = login.exchange
        if exchange is None:
            raise CloseConnection("a SASL token came without an exchange")
        if exchange.blocking:
            answer = await self._pool.run(exchange.evaluate, token)
        else:
            answer = exchange.evaluate(token)
        return answer, self._completed(connection, login, exchange) if exchange.complete else 0

    def _words(self, login: _Login, error: SaslError) -> str:
        """Return the message for the client, which does not reveal what is wrong with the credentials."""
        return error.message_of(reauthentication=login.previous is not None)
