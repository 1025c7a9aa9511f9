"""The SASL login of a connection to another node."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.network.connector import SaslLogin
from moldau.network.failures import LoginFailed
from moldau.network.login import log_in
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from moldau.protocol.messages.sasl_handshake import SaslHandshakeResponse
from moldau.protocol.schema import Message
from moldau.security.sasl.mechanism import SaslError
from moldau.security.sasl.plain import PlainClient

AGREED = SaslHandshakeResponse(mechanisms=["PLAIN"])


class NoTicket:
    """An exchange that has no credentials."""

    complete = False
    blocking = True

    def first(self) -> bytes:
        raise SaslError("no ticket")

    def evaluate(self, challenge: bytes) -> bytes | None:
        return None


def login(exchange: Any = None) -> SaslLogin:
    return SaslLogin("PLAIN", lambda host: exchange or PlainClient("alice", "secret"))


def run(answers: Sequence[Message], used: SaslLogin | None = None) -> tuple[int, list[Message]]:
    """Log in at a node that gives these answers; return the session's lifetime and the requests."""
    requests: list[Message] = []
    upcoming = iter(answers)

    async def call(request: Message) -> Any:
        requests.append(request)
        return next(upcoming)

    return asyncio.run(log_in(call, used or login(), "h", 9)), requests


def test_tokens_are_exchanged_until_the_login_is_complete() -> None:
    lifetime_ms, requests = run([AGREED, SaslAuthenticateResponse(session_lifetime_ms=1234)])
    assert lifetime_ms == 1234
    assert requests[1] == SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")


@pytest.mark.parametrize(
    ("answers", "code", "sentence"),
    [
        (
            [SaslHandshakeResponse(error_code=33, mechanisms=["GSSAPI", "SCRAM-SHA-512"])],
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            r"PLAIN is not enabled there \(enabled: GSSAPI, SCRAM-SHA-512\)",
        ),
        ([SaslHandshakeResponse(error_code=34)], ErrorCode.ILLEGAL_SASL_STATE, "does not use SASL"),
        (
            [AGREED, SaslAuthenticateResponse(error_code=58, error_message="Invalid username or password")],
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            "h:9 refused the login: Invalid username or password",
        ),
    ],
)
def test_refusals_name_the_reason(answers: list[Message], code: ErrorCode, sentence: str) -> None:
    with pytest.raises(LoginFailed, match=sentence) as error:
        run(answers)
    assert error.value.code is code
    assert "secret" not in str(error.value)


def test_missing_credentials_are_a_failed_login() -> None:
    with pytest.raises(KafkaError, match="no credentials for h:9: no ticket") as error:
        run([AGREED], login(NoTicket()))
    assert error.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
