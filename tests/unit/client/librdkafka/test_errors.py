"""Errors of librdkafka that a retry repeats."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from moldau.base.errors import ErrorCode
from moldau.client.librdkafka.errors import client_error, is_refusal


@pytest.mark.parametrize(
    ("number", "text", "refused"),
    [
        (-169, "SaslAuthenticateRequest failed: Authentication failed", True),
        (-181, "SSL handshake failed: certificate verify failed", True),
        (-181, "SSL handshake failed: Disconnected", False),
        (-195, "Receive failed: SSL routines::tlsv13 alert certificate required", True),
        (-195, "Receive failed: SSL routines::tlsv1 alert unknown ca", True),
        (-195, "Connect to localhost failed: Connection refused", False),
    ],
)
def test_refused_logins_and_certificates(number: int, text: str, refused: bool) -> None:
    assert is_refusal(KafkaError(number, text)) is refused


def test_refused_login_has_kafkas_code() -> None:
    assert client_error(KafkaError(-169, "no")).code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert client_error(KafkaError(-181, "no")).code is ErrorCode.NETWORK_EXCEPTION
