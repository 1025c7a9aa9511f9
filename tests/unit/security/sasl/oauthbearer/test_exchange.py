"""The exchange of tokens, both sides."""

from __future__ import annotations

import logging

import pytest

from moldau.base.clock import ManualClock
from moldau.security.sasl.mechanism import SaslError
from moldau.security.sasl.oauthbearer.exchange import OAuthClient, OAuthServer
from moldau.security.sasl.oauthbearer.messages import ClientMessage
from moldau.security.sasl.oauthbearer.unsecured import UnsecuredSource, UnsecuredValidator


def source(clock: ManualClock, **options: str) -> UnsecuredSource:
    return UnsecuredSource({"unsecuredLoginStringClaim_sub": "alice", **options}, clock)


def server(clock: ManualClock, **options: str) -> OAuthServer:
    return OAuthServer(UnsecuredValidator(options, clock), clock)


def test_a_valid_token_completes_both_sides() -> None:
    clock = ManualClock()
    broker, client = server(clock), OAuthClient(source(clock, unsecuredLoginExtension_traceId="1"))
    answer = broker.evaluate(client.first())
    assert answer == b"" and broker.complete
    assert client.evaluate(answer) is None and client.complete
    assert str(broker.principal) == "User:alice"


def test_the_session_ends_with_the_token() -> None:
    clock = ManualClock()
    broker = server(clock)
    broker.evaluate(OAuthClient(source(clock, unsecuredLoginLifetimeSeconds="60")).first())
    assert broker.session_lifetime_ms == 60_000
    clock.advance(1000)
    assert broker.session_lifetime_ms == 59_000


def test_a_refused_token_is_explained_before_the_exchange_fails() -> None:
    clock = ManualClock()
    broker = server(clock, unsecuredValidatorRequiredScope="read")
    client = OAuthClient(source(clock))
    challenge = broker.evaluate(client.first())
    assert challenge == b'{"status":"insufficient_scope", "scope":"[read]"}'
    assert not broker.complete
    assert client.evaluate(challenge) == b"\x01" and not client.complete
    with pytest.raises(SaslError) as failed:
        broker.evaluate(b"\x01")
    assert failed.value.message == challenge.decode()
    with pytest.raises(SaslError, match="after the end"):
        client.evaluate(b"")


def test_after_a_refused_token_no_other_one_is_accepted() -> None:
    clock = ManualClock()
    broker = server(clock, unsecuredValidatorRequiredScope="read")
    broker.evaluate(OAuthClient(source(clock)).first())
    good = OAuthClient(source(clock, unsecuredLoginListClaim_scope=",read")).first()
    with pytest.raises(SaslError, match="invalid credentials"):
        broker.evaluate(good)
    assert not broker.complete


@pytest.mark.parametrize("first", [b"", b"\x01", b"garbage"])
def test_a_malformed_message_fails_without_details(first: bytes) -> None:
    with pytest.raises(SaslError) as failed:
        server(ManualClock()).evaluate(first)
    assert failed.value.message == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism "
        "OAUTHBEARER"
    )


def test_an_authorization_id_must_be_the_principal() -> None:
    clock = ManualClock()
    value = source(clock).token().value
    assert server(clock).evaluate(ClientMessage(value, "alice").encode()) == b""
    with pytest.raises(SaslError, match="authorization id"):
        server(clock).evaluate(ClientMessage(value, "bob").encode())


def test_a_message_after_the_end_is_refused() -> None:
    clock = ManualClock()
    broker, first = server(clock), OAuthClient(source(clock)).first()
    broker.evaluate(first)
    with pytest.raises(SaslError, match="invalid credentials"):
        broker.evaluate(first)


def test_tokens_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    clock = ManualClock()
    message = OAuthClient(source(clock)).first()
    server(clock, unsecuredValidatorRequiredScope="read").evaluate(message)
    assert "lacks a required scope" in caplog.text
    assert source(clock).token().value[:40] not in caplog.text
    assert "eyJ" not in repr(source(clock).token())
