"""SCRAM: the vectors of the RFCs, Kafka's extensions, and what an attacker may try."""

from __future__ import annotations

import base64
import random
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.base.clock import ManualClock
from moldau.security.principal import KafkaPrincipal
from moldau.security.sasl import scram
from moldau.security.sasl.mechanism import (
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    SaslError,
    ScramCredential,
    TokenCredential,
)
from moldau.security.sasl.scram import (
    ScramClient,
    ScramServer,
    escape_name,
    make_credential,
    random_salt,
    unescape_name,
)

MECHANISMS = (SCRAM_SHA_256, SCRAM_SHA_512)
REFUSED = "Authentication failed during authentication due to invalid credentials with SASL mechanism "
CLOCK = ManualClock()
CREDENTIALS = {
    (mechanism, user): make_credential(mechanism, password, 4096, b"salt" * 4)
    for mechanism in MECHANISMS
    for user, password in (("alice", "alice-secret"), ("a,b=c", "pässword"))
}
TOKENS = {
    mechanism: TokenCredential(
        KafkaPrincipal("User", "owner"),
        CLOCK.time_ms() + 60_000,
        make_credential(mechanism, "aG1hYw==", 4096, b"token salt"),
    )
    for mechanism in MECHANISMS
}


class Metadata:
    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        return CREDENTIALS.get((mechanism, user))

    def token(self, mechanism: str, token_id: str) -> TokenCredential | None:
        return TOKENS[mechanism] if token_id == "token-1" else None


def server_of(mechanism: str, seed: int = 1) -> ScramServer:
    metadata = Metadata()
    return ScramServer(mechanism, metadata, metadata, CLOCK, random.Random(seed), b"decoy")


def client_of(mechanism: str, user: str, password: str, *, token: bool = False, seed: int = 2) -> ScramClient:
    return ScramClient(mechanism, user, password, random.Random(seed), token=token)


def run(client: ScramClient, server: ScramServer) -> None:
    message: bytes | None = client.first()
    while message is not None:
        message = client.evaluate(server.evaluate(message))


def test_the_vector_of_rfc_7677() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    credential = make_credential(SCRAM_SHA_256, "pencil", 4096, salt)

    class User(Metadata):
        def scram(self, mechanism: str, user: str) -> ScramCredential | None:
            return credential if user == "user" else None

    client_nonce, server_nonce = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    server = ScramServer(SCRAM_SHA_256, User(), Metadata(), CLOCK, random.Random(1), b"")
    first = server.evaluate(f"n,,n=user,r={client_nonce}".encode())
    assert first.endswith(b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")

    # The RFC's server nonce is not in base 36: the client's side is checked against the whole vector.
    client = ScramClient(SCRAM_SHA_256, "user", "pencil", random.Random(1))
    client._nonce = client_nonce
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    challenge = f"r={client_nonce}{server_nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    assert client.evaluate(challenge) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert client.evaluate(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None
    assert client.complete


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("alice", "alice-secret"), ("a,b=c", "pässword")])
def test_users_log_in(mechanism: str, user: str, password: str) -> None:
    client, server = client_of(mechanism, user, password), server_of(mechanism)
    run(client, server)
    assert client.complete
    assert server.complete
    assert server.principal == KafkaPrincipal("User", user)
    assert not server.principal.token_authenticated
    assert server.session_lifetime_ms is None


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_delegation_token_logs_its_owner_in(mechanism: str) -> None:
    client, server = client_of(mechanism, "token-1", "aG1hYw==", token=True), server_of(mechanism)
    assert client.first().endswith(b",tokenauth=true")
    run(client, server)
    assert server.principal == KafkaPrincipal("User", "owner", token_authenticated=True)
    assert server.session_lifetime_ms == 60_000


def test_a_token_needs_the_extension_and_a_user_must_not_use_it() -> None:
    for user, password, token in (("token-1", "aG1hYw==", False), ("alice", "alice-secret", True)):
        with pytest.raises(SaslError):
            run(client_of(SCRAM_SHA_256, user, password, token=token), server_of(SCRAM_SHA_256))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_unknown_users_get_the_same_answers_as_wrong_passwords(mechanism: str) -> None:
    answers, messages = [], []
    for user in ("alice", "nobody"):
        client, server = client_of(mechanism, user, "wrong"), server_of(mechanism)
        challenge = server.evaluate(client.first())
        answers.append(challenge)
        final = client.evaluate(challenge)
        assert final is not None
        with pytest.raises(SaslError) as caught:
            server.evaluate(final)
        messages.append((caught.value.message, caught.value.reason))
    assert messages[0] == messages[1] == (REFUSED + mechanism, "unknown user or wrong password")
    assert answers[0].split(b",")[0] == answers[1].split(b",")[0]
    assert all(answer.endswith(b",i=4096") for answer in answers)


def test_the_salt_of_an_unknown_user_does_not_change() -> None:
    salts = set()
    for seed in range(5):
        answer = server_of(SCRAM_SHA_256, seed).evaluate(b"n,,n=nobody,r=abc")
        salts.add(answer.split(b",")[1])
    assert len(salts) == 1
    (salt,) = salts
    assert len(base64.b64decode(salt[2:])) >= 24
    assert salt not in server_of(SCRAM_SHA_256).evaluate(b"n,,n=somebody,r=abc")


def test_an_unknown_user_cannot_log_in_with_the_decoys_keys() -> None:
    """The decoy's stored key is known (zeros); no proof makes its hash zero, and the user stays unknown."""
    server = server_of(SCRAM_SHA_256)
    nonce = server.evaluate(b"n,,n=nobody,r=abc").split(b",")[0]
    with pytest.raises(SaslError):
        server.evaluate(b"c=biws," + nonce + b",p=" + base64.b64encode(bytes(32)))


def test_replayed_messages_are_refused() -> None:
    client, server = client_of(SCRAM_SHA_256, "alice", "alice-secret"), server_of(SCRAM_SHA_256)
    first = client.first()
    final = client.evaluate(server.evaluate(first))
    assert final is not None
    server.evaluate(final)
    with pytest.raises(SaslError):
        server.evaluate(final)
    replayed = server_of(SCRAM_SHA_256, seed=99)
    replayed.evaluate(first)
    with pytest.raises(SaslError) as caught:
        replayed.evaluate(final)
    assert "nonce" in caught.value.reason


@pytest.mark.parametrize("change", ["prefixed", "client's only", "shorter"])
def test_the_nonce_is_equal(change: str) -> None:
    """CVE-2024-56128: Kafka accepted any nonce that ended with its own."""
    server = server_of(SCRAM_SHA_256)
    nonce = server.evaluate(b"n,,n=alice,r=abc").split(b",")[0][2:]
    sent = {"prefixed": b"x" + nonce, "client's only": b"abc", "shorter": nonce[:-1]}[change]
    with pytest.raises(SaslError) as caught:
        server.evaluate(b"c=biws,r=" + sent + b",p=" + base64.b64encode(bytes(32)))
    assert "nonce" in caught.value.reason


def test_an_exchange_that_failed_stays_failed() -> None:
    server = server_of(SCRAM_SHA_256)
    with pytest.raises(SaslError):
        server.evaluate(b"nonsense")
    with pytest.raises(SaslError):
        server.evaluate(b"n,,n=alice,r=abc")


def test_the_authorization_id_is_the_user() -> None:
    assert server_of(SCRAM_SHA_256).evaluate(b"n,a=alice,n=alice,r=abc").startswith(b"r=abc")
    for user in (b"alice", b"nobody"):
        with pytest.raises(SaslError) as caught:
            server_of(SCRAM_SHA_256).evaluate(b"n,a=bob,n=" + user + b",r=abc")
        assert caught.value.message == (
            "Authentication failed: Client requested an authorization id that is different from username"
        )


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n",
        b"n,",
        b"n,,",
        b"n,,n=alice",
        b"n,,n=,r=abc",
        b"n,,n=alice,r=",
        b"n,,n=al=ice,r=abc",
        b"n,,n=ali\xffce,r=abc",
        b"n,,n=alice,r=a b",
        b"n,,n=alice,r=" + b"a" * 1025,
        b"n,,n=alice,r=abc,1=2",
        b"n,,n=alice,r=abc,ext",
        b"n,,m=ext,n=alice,r=abc",
        b"y,,n=alice,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"n,alice,n=alice,r=abc",
        "n,,n=älice,r=abc".encode(),
    ],
)
def test_invalid_first_messages_are_refused(message: bytes) -> None:
    with pytest.raises(SaslError) as caught:
        server_of(SCRAM_SHA_256).evaluate(message)
    assert caught.value.message == REFUSED + SCRAM_SHA_256


@pytest.mark.parametrize(
    "final", [b"", b"c=biws", b"c=biws,r=NONCE", b"c=biws,r=NONCE,p=!!", b"c=biws,r=NONCE,p="]
)
def test_invalid_final_messages_are_refused(final: bytes) -> None:
    server = server_of(SCRAM_SHA_512)
    nonce = server.evaluate(b"n,,n=alice,r=abc").split(b",")[0][2:]
    with pytest.raises(SaslError) as caught:
        server.evaluate(final.replace(b"NONCE", nonce))
    assert caught.value.message_of(reauthentication=True) == (REFUSED + SCRAM_SHA_512).replace(
        "during authentication", "during re-authentication"
    )


@pytest.mark.parametrize("length", [3_000, 500_000])
def test_long_names_are_answered(length: int) -> None:
    """Apache Kafka's regular expression overflows its stack and the connection hangs."""
    server = server_of(SCRAM_SHA_256)
    challenge = server.evaluate(b"n,,n=" + b"a" * length + b",r=abc")
    assert challenge.startswith(b"r=abc")


@pytest.mark.parametrize("token", [b"n,,n=%s,r=abc", b"n,,n=alice,r=abc,x=%s", b"n,a=%s,n=alice,r=abc"])
def test_nothing_of_a_long_first_message_is_kept(token: bytes) -> None:
    """The client is not known yet, and the connection may stay for a minute."""
    server = server_of(SCRAM_SHA_256)
    tracemalloc.start()
    try:
        with suppress(SaslError):
            server.evaluate(token % (b"a" * 500_000))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 50_000


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"r=other,s=c2FsdA==,i=4096",
        b"r=NONCEx,s=c2FsdA==,i=1",
        b"r=NONCEx,s=c2FsdA==,i=99999999",
        b"r=NONCEx,s=!,i=4096",
        b"r=NONCE,s=c2FsdA==,i=4096",
        b"e=other-error",
    ],
)
def test_a_client_refuses_a_wrong_server(challenge: bytes) -> None:
    client = client_of(SCRAM_SHA_256, "alice", "alice-secret")
    nonce = client.first().split(b"r=")[1]
    with pytest.raises(SaslError):
        client.evaluate(challenge.replace(b"NONCE", nonce))


def test_a_client_refuses_a_server_that_does_not_know_the_password() -> None:
    client, server = client_of(SCRAM_SHA_256, "alice", "alice-secret"), server_of(SCRAM_SHA_256)
    client.evaluate(server.evaluate(client.first()))
    with pytest.raises(SaslError, match="Invalid server signature"):
        client.evaluate(b"v=" + base64.b64encode(bytes(32)))
    assert not client.complete


@given(st.text(st.characters(min_codepoint=1, max_codepoint=127), min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_names_survive_escaping(name: str) -> None:
    assert unescape_name(escape_name(name)) == name


PART = st.sampled_from(
    [b"n", b"y", b"a=", b"n=alice", b"r=abc", b"c=biws", b"p=", b"=2C", b"tokenauth=true", b"=", b""]
)


@given(st.binary(max_size=60) | st.lists(PART, max_size=6).map(b",".join), st.binary(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_messages_are_answered_or_refused(first: bytes, final: bytes) -> None:
    server = server_of(SCRAM_SHA_256)
    with pytest.raises(SaslError):
        server.evaluate(first)
        server.evaluate(final)
    assert not server.complete


def test_salts_have_kafkas_form() -> None:
    salt = random_salt(random.Random(3))
    assert salt.isalnum()
    assert 20 <= len(salt) <= 26


def test_credentials_do_not_show_keys() -> None:
    assert repr(CREDENTIALS[SCRAM_SHA_256, "alice"]) == "ScramCredential(iterations=4096)"


def test_many_extensions_are_refused_before_they_are_read() -> None:
    for token in (b"n,,n=alice,r=abc", b"c=biws,r=abc"):
        parse = scram._parse_client_first if token.startswith(b"n") else scram._parse_client_final
        with pytest.raises(ValueError, match="too many fields"):
            parse(token + b",a=b" * 100_000 + b",p=AAAA")
