"""SCRAM users through the admin client: what is sent, and what is refused without a request."""

from __future__ import annotations

from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.admin.client import AdminClient
from moldau.client.admin.scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from moldau.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from moldau.security.sasl.scram import salted_password
from tests.harness.wire.fake_broker import FakeBroker

INFO = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)


def altered(request: Any) -> AlterUserScramCredentialsResponse:
    users = [*request.deletions, *request.upsertions]
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=each.name, error_code=91 if each.name == "bob" else 0)
            for each in users
        ]
    )


def described(request: Any) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(
        results=[
            DescribeUserScramCredentialsResult(
                user="alice", credential_infos=[CredentialInfo(mechanism=2, iterations=8192)]
            ),
            DescribeUserScramCredentialsResult(user="bob", error_code=91),
            DescribeUserScramCredentialsResult(user="carol", error_code=92, error_message="twice"),
        ]
    )


def broker() -> FakeBroker:
    answers: dict[int, Any] = {
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: altered,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: described,
    }
    return FakeBroker(answers)


def test_only_the_salted_password_is_sent() -> None:
    upsertion = UserScramCredentialUpsertion("alice", INFO, "secret", b"salt")
    deletion = UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_256)
    with broker() as fake, AdminClient(fake.bootstrap) as admin:
        results = admin.alter_user_scram_credentials([upsertion, deletion])
    assert results["alice"] is None
    assert results["bob"] is not None and results["bob"].code is ErrorCode.RESOURCE_NOT_FOUND
    sent: Any = fake.requests[-1]
    assert sent.upsertions[0].salted_password == salted_password("SCRAM-SHA-512", "secret", b"salt", 8192)
    assert (sent.deletions[0].name, sent.deletions[0].mechanism) == ("bob", 1)
    assert "secret" not in repr(upsertion)


def test_salts_are_random() -> None:
    with broker() as fake, AdminClient(fake.bootstrap) as admin:
        for _ in range(2):
            admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", INFO, b"secret")])
    salts: list[Any] = [each.upsertions[0].salt for each in fake.requests if hasattr(each, "upsertions")]
    assert len({bytes(salt) for salt in salts}) == 2


def test_users_with_an_invalid_alteration_are_not_sent() -> None:
    invalid = [
        UserScramCredentialUpsertion("", INFO, "secret"),
        UserScramCredentialUpsertion("alice", INFO, ""),
        UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_256),
    ]
    with broker() as fake, AdminClient(fake.bootstrap) as admin:
        results = admin.alter_user_scram_credentials(invalid)
        assert {user: error and error.message for user, error in results.items()} == {
            "": "Username must not be empty",
            "alice": "Password must not be empty",
        }
    assert not any(each.API_KEY == ApiKey.ALTER_USER_SCRAM_CREDENTIALS for each in fake.requests)


def test_unknown_users_are_left_out_of_descriptions() -> None:
    with broker() as fake, AdminClient(fake.bootstrap) as admin:
        results = admin.describe_user_scram_credentials(["alice", "bob", "carol"])
    alice, carol = results["alice"], results["carol"]
    assert not isinstance(alice, KafkaError) and alice.credential_infos == [INFO]
    assert isinstance(carol, KafkaError) and carol.code is ErrorCode.DUPLICATE_RESOURCE
    assert set(results) == {"alice", "carol"}
