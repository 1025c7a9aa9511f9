"""SASL PLAIN: tokens, messages and users."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.security.principal import KafkaPrincipal
from moldau.security.sasl.mechanism import SaslError
from moldau.security.sasl.plain import PlainClient, PlainServer, PlainUsers

USERS = PlainUsers({"user_alice": "alice-secret", "user_bärbel": "pässword", "username": "admin"}, bytes(32))


def login(token: bytes) -> PlainServer:
    server = PlainServer(USERS)
    assert server.evaluate(token) == b""
    return server


@pytest.mark.parametrize(("name", "password"), [("alice", "alice-secret"), ("bärbel", "pässword")])
def test_users_of_the_jaas_entry_log_in(name: str, password: str) -> None:
    client = PlainClient(name, password)
    server = login(client.first())
    assert server.complete
    assert server.principal == KafkaPrincipal("User", name)
    assert server.session_lifetime_ms is None
    assert client.evaluate(b"") is None
    assert client.complete


def test_an_authorization_id_equals_the_username() -> None:
    assert login(b"alice\0alice\0alice-secret").complete


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0alice-secret", "Authentication failed: Invalid username or password"),
        (b"\0admin\0admin", "Authentication failed: Invalid username or password"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (
            b"bob\0alice\0alice-secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0a\0b\0c", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0a\0b\0c\0d\0e", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    ],
)
def test_refused_tokens_have_kafkas_messages(token: bytes, message: str) -> None:
    server = PlainServer(USERS)
    with pytest.raises(SaslError) as caught:
        server.evaluate(token)
    assert caught.value.message == message
    assert not server.complete


def test_a_complete_exchange_takes_no_further_token() -> None:
    server = login(b"\0alice\0alice-secret")
    with pytest.raises(SaslError):
        server.evaluate(b"\0alice\0alice-secret")


@given(st.binary(max_size=200) | st.lists(st.binary(max_size=20), max_size=5).map(b"\0".join))
@settings(max_examples=200, deadline=None)
def test_any_token_is_refused_with_an_error(token: bytes) -> None:
    with pytest.raises(SaslError):
        PlainServer(USERS).evaluate(token)


def test_names_of_any_length_are_answered() -> None:
    with pytest.raises(SaslError, match="Invalid username or password"):
        PlainServer(USERS).evaluate(b"\0" + b"a" * 300_000 + b"\0" + b"b" * 200_000)
