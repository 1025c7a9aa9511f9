"""The SASL login of a connection to another node: SaslHandshake, then SaslAuthenticate until complete."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.config.definition import ConfigError
from moldau.network.connector import SaslLogin
from moldau.network.failures import LoginFailed
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from moldau.protocol.schema import Message
from moldau.security.sasl.mechanism import SaslClient, SaslError

#: Sends a request and returns its response.
Call = Callable[[Message], Awaitable[Any]]


async def log_in(call: Call, login: SaslLogin, host: str, port: int) -> int:
    """Authenticate; return after how many milliseconds the session ends, 0 if it does not (KIP-368)."""
    handshake: SaslHandshakeResponse = await call(SaslHandshakeRequest(mechanism=login.mechanism))
    code = ErrorCode(handshake.error_code)
    if code is not ErrorCode.NONE:
        raise LoginFailed(host, port, code, _refusal(login.mechanism, handshake), handshake.mechanisms)
    try:
        exchange = login.begin(host)
        token: bytes | None = await _run(exchange.first, blocking=exchange.blocking)
    except (SaslError, ConfigError) as error:
        raise KafkaError(
            ErrorCode.SASL_AUTHENTICATION_FAILED, f"no credentials for {host}:{port}: {error}"
        ) from error
    while token is not None:
        response: SaslAuthenticateResponse = await call(SaslAuthenticateRequest(auth_bytes=token))
        if response.error_code != ErrorCode.NONE:
            message = response.error_message or "the broker gave no reason"
            raise LoginFailed(host, port, ErrorCode(response.error_code), message)
        token = await _next(exchange, response.auth_bytes, host, port)
    return int(response.session_lifetime_ms)


async def _next(exchange: SaslClient, challenge: bytes, host: str, port: int) -> bytes | None:
    """Return the next token to send; None if the exchange is complete."""
    if exchange.complete:
        return None
    try:
        token: bytes | None = await _run(lambda: exchange.evaluate(challenge), blocking=exchange.blocking)
    except SaslError as error:
        # The server could not prove that it knows the credentials.
        raise LoginFailed(host, port, ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)) from error
    return token


async def _run(step: Callable[[], Any], *, blocking: bool) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, step) if blocking else step()


def _refusal(mechanism: str, response: SaslHandshakeResponse) -> str:
    if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        enabled = ", ".join(response.mechanisms) or "none"
        return f"the SASL mechanism {mechanism} is not enabled there (enabled: {enabled})"
    if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        return "its listener does not use SASL (security.protocol of this client)"
    return KafkaError(ErrorCode(response.error_code)).message or "the handshake was refused"
