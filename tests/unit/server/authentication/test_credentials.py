"""Credentials of users and tokens as the committed metadata has them, proved by whole SCRAM exchanges."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Iterator, Sequence

import pytest

from moldau.base.clock import ManualClock
from moldau.base.pool import InlinePool
from moldau.config.broker.config import BrokerConfig
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metadata.records import MetadataRecord
from moldau.protocol.stored.metadata import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
    UserScramCredentialRecord,
)
from moldau.security.principal import KafkaPrincipal
from moldau.security.sasl import scram as module
from moldau.security.sasl.mechanism import SCRAM_SHA_256, SCRAM_SHA_512, SaslError
from moldau.security.sasl.scram import ScramClient, ScramServer, make_credential
from moldau.security.tokens import token_hmac
from moldau.server.authentication.credentials import MetadataCredentials
from moldau.server.tasks import BackgroundTasks
from tests.unit.config.node_properties import node

SECRET = "signs tokens"
TOKEN = "PyN0qanKStKz_he6AG-KTQ"
PASSWORD = base64.b64encode(token_hmac(SECRET, TOKEN)).decode()


class Metadata:
    """Metadata that a test changes, and the credentials in it."""

    def __init__(self, secret: str | None = SECRET) -> None:
        properties = node(log_dirs="/data") | {
            "listeners": "SASL_PLAINTEXT://:9092,CONTROLLER://:9093",
            "inter.broker.listener.name": "SASL_PLAINTEXT",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
        }
        if secret is not None:
            properties["delegation.token.secret.key"] = secret
        self.image = MetadataImage.empty()
        self.credentials = MetadataCredentials(
            BrokerConfig(properties), random.Random(1), InlinePool(), BackgroundTasks()
        )
        self.clock = ManualClock()

    def write(self, *records: MetadataRecord) -> None:
        """Apply records, and run the background tasks that this starts."""
        asyncio.run(self._write(records))

    async def _write(self, records: Sequence[MetadataRecord]) -> None:
        delta = MetadataDelta(self.image)
        delta.replay_all(records)
        self.image = delta.apply(self.image.offset + 1, 1)
        self.credentials.apply(delta, self.image)
        await asyncio.sleep(0)

    def log_in(
        self, mechanism: str, user: str, password: str, *, token: bool = True
    ) -> tuple[KafkaPrincipal, int | None]:
        server = ScramServer(
            mechanism, self.credentials, self.credentials, self.clock, random.Random(2), b"decoy"
        )
        client = ScramClient(mechanism, user, password, random.Random(3), token=token)
        proof = client.evaluate(server.evaluate(client.first()))
        assert proof is not None
        client.evaluate(server.evaluate(proof))
        return server.principal, server.session_lifetime_ms


def record(expires_at: int = 5_000, owner: str = "User:alice") -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=owner, requester=owner, expiration_timestamp=expires_at, max_timestamp=9_000, token_id=TOKEN
    )


@pytest.fixture
def derivations(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The mechanisms of all derivations from a token's HMAC."""
    made: list[str] = []

    def counted(mechanism: str, password: str, iterations: int, salt: bytes) -> object:
        made.append(mechanism)
        return make_credential(mechanism, password, iterations, salt)

    monkeypatch.setattr(module, "make_credential", counted)
    yield made


def test_a_user_logs_in_with_the_password_of_its_record() -> None:
    metadata = Metadata()
    stored = make_credential(SCRAM_SHA_256, "secret", 4096, b"salt")
    metadata.write(
        UserScramCredentialRecord(
            name="bob",
            mechanism=1,
            salt=stored.salt,
            stored_key=stored.stored_key,
            server_key=stored.server_key,
            iterations=4096,
        )
    )
    principal, lifetime_ms = metadata.log_in(SCRAM_SHA_256, "bob", "secret", token=False)
    assert (str(principal), principal.token_authenticated, lifetime_ms) == ("User:bob", False, None)
    with pytest.raises(SaslError):
        metadata.log_in(SCRAM_SHA_512, "bob", "secret", token=False)
    with pytest.raises(SaslError):
        metadata.log_in(SCRAM_SHA_256, "bob", "secret", token=True)


@pytest.mark.parametrize("mechanism", [SCRAM_SHA_256, SCRAM_SHA_512])
def test_a_token_logs_in_as_its_owner_until_it_expires(mechanism: str) -> None:
    metadata = Metadata()
    metadata.write(record(expires_at=metadata.clock.time_ms() + 700))
    principal, lifetime_ms = metadata.log_in(mechanism, TOKEN, PASSWORD)
    assert (str(principal), principal.token_authenticated, lifetime_ms) == ("User:alice", True, 700)
    metadata.clock.advance(800)
    assert metadata.log_in(mechanism, TOKEN, PASSWORD)[1] == 0
    with pytest.raises(SaslError):
        metadata.log_in(mechanism, TOKEN, PASSWORD, token=False)
    with pytest.raises(SaslError):
        metadata.log_in(mechanism, TOKEN, PASSWORD[:-1] + "A")


def test_a_removed_token_does_not_log_in() -> None:
    metadata = Metadata()
    metadata.write(record())
    metadata.log_in(SCRAM_SHA_512, TOKEN, PASSWORD)
    metadata.write(RemoveDelegationTokenRecord(token_id=TOKEN))
    with pytest.raises(SaslError):
        metadata.log_in(SCRAM_SHA_512, TOKEN, PASSWORD)


def test_the_credential_is_derived_once_when_the_token_appears(derivations: list[str]) -> None:
    metadata = Metadata()
    metadata.write(record())
    assert derivations == [SCRAM_SHA_512]
    for _ in range(3):
        metadata.log_in(SCRAM_SHA_512, TOKEN, PASSWORD)
    metadata.write(record(expires_at=6_000))
    metadata.log_in(SCRAM_SHA_512, TOKEN, PASSWORD)
    assert derivations == [SCRAM_SHA_512]


def test_without_a_secret_key_tokens_do_not_log_in(derivations: list[str]) -> None:
    metadata = Metadata(secret=None)
    metadata.write(record())
    with pytest.raises(SaslError):
        metadata.log_in(SCRAM_SHA_512, TOKEN, PASSWORD)
    assert derivations == []
