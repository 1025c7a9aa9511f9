"""AlterUserScramCredentials and DescribeUserScramCredentials, with the codes and messages of Apache Kafka."""

from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.errors import failure_response
from moldau.controller.security.scram import alter_user_scram_credentials, describe_user_scram_credentials
from moldau.metadata.features import METADATA_VERSION
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from moldau.security.sasl.scram import make_credential, salted_password
from tests.unit.controller.harness import Cluster

SHA_256, SHA_512 = 1, 2
SALT = b"salt of the user"
Results = dict[str, tuple[ErrorCode, str | None]]
OK = (ErrorCode.NONE, None)
TWICE = (ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")


def upsert(user: str, mechanism: int = SHA_256, iterations: int = 4096) -> ScramCredentialUpsertion:
    salted = salted_password("SCRAM-SHA-256", "secret", SALT, 4096)
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=SALT, salted_password=salted
    )


def delete(user: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=user, mechanism=mechanism)


def alter(cluster: Cluster, *alterations: ScramCredentialUpsertion | ScramCredentialDeletion) -> Results:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in alterations if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in alterations if isinstance(each, ScramCredentialUpsertion)],
    )
    results = cluster.decide(alter_user_scram_credentials, request).results
    return {each.user: (ErrorCode(each.error_code), each.error_message) for each in results}


def describe(cluster: Cluster, *users: str) -> dict[str, object]:
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users] or None)
    response = describe_user_scram_credentials(cluster.controller.image, request)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, "")
    return {
        each.user: (each.error_code, each.error_message)
        if each.error_code
        else [(info.mechanism, info.iterations) for info in each.credential_infos]
        for each in response.results
    }


def test_keys_of_a_password_are_stored_and_described_without_secrets() -> None:
    cluster = Cluster()
    assert alter(cluster, upsert("alice")) == {"alice": OK}
    expected = make_credential("SCRAM-SHA-256", "secret", 4096, SALT)
    stored = cluster.controller.image.scram[SHA_256, "alice"]
    assert (stored.salt, stored.stored_key, stored.server_key, stored.iterations) == (
        expected.salt,
        expected.stored_key,
        expected.server_key,
        4096,
    )
    assert "salt of" not in repr(stored) and "iterations=4096" in repr(stored)
    assert describe(cluster) == {"alice": [(SHA_256, 4096)]}


def test_a_credential_is_replaced_and_deleted() -> None:
    cluster = Cluster()
    alter(cluster, upsert("alice"))
    alter(cluster, upsert("alice", SHA_512, 8192))
    alter(cluster, upsert("alice", SHA_256, 16384))
    assert describe(cluster, "alice") == {"alice": [(SHA_256, 16384), (SHA_512, 8192)]}
    assert alter(cluster, delete("alice")) == {"alice": OK}
    assert describe(cluster) == {"alice": [(SHA_512, 8192)]}
    assert alter(cluster, delete("alice")) == {
        "alice": (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    }


def test_one_user_is_altered_once_per_request_also_with_two_mechanisms() -> None:
    cluster = Cluster()
    alter(cluster, upsert("bob"))
    results = alter(cluster, upsert("alice", SHA_256), upsert("alice", SHA_512), upsert("carol"))
    assert results == {"carol": OK, "alice": TWICE}
    assert alter(cluster, delete("bob"), upsert("bob", SHA_512)) == {"bob": TWICE}
    assert alter(cluster, delete("bob"), delete("bob")) == {"bob": TWICE}
    assert describe(cluster) == {"bob": [(SHA_256, 4096)], "carol": [(SHA_256, 4096)]}


@pytest.mark.parametrize(
    ("alteration", "error"),
    [
        (upsert("u", iterations=4095), (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")),
        (upsert("u", iterations=16385), (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")),
        (upsert("u", mechanism=3), (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")),
        (delete("u", mechanism=0), (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")),
        (upsert(""), (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")),
        (
            ScramCredentialUpsertion(name="u", mechanism=1, iterations=4096, salt=SALT),
            (ErrorCode.UNKNOWN_SERVER_ERROR, None),
        ),
    ],
)
def test_invalid_alterations_are_refused(
    alteration: ScramCredentialUpsertion | ScramCredentialDeletion, error: tuple[ErrorCode, str]
) -> None:
    cluster = Cluster()
    assert alter(cluster, alteration) == {alteration.name: error}
    assert cluster.records == []


def test_the_first_error_of_a_user_is_kept() -> None:
    cluster = Cluster()
    results = alter(cluster, upsert("u", iterations=1), upsert("u"), upsert("u"))
    assert results == {"u": (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")}


def test_an_old_metadata_version_has_no_credentials() -> None:
    cluster = Cluster(brokers=(), levels={METADATA_VERSION: 10})
    unsupported = (ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
    assert alter(cluster, upsert("a"), delete("b")) == {"a": unsupported, "b": unsupported}


def test_unknown_and_repeated_users_are_described_with_errors() -> None:
    cluster = Cluster()
    alter(cluster, upsert("alice"))
    assert describe(cluster, "alice", "bob", "bob") == {
        "alice": [(SHA_256, 4096)],
        "bob": (
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: bob",
        ),
    }
    assert describe(cluster, "carol") == {
        "carol": (
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to describe a user credential that does not exist: carol",
        )
    }


def test_an_error_of_the_whole_request_is_repeated_for_every_user() -> None:
    request = AlterUserScramCredentialsRequest(
        deletions=[delete("bob"), delete("alice")], upsertions=[upsert("bob")]
    )
    failed = failure_response(request, KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    assert isinstance(failed, AlterUserScramCredentialsResponse)
    assert [(each.user, each.error_code) for each in failed.results] == [("alice", 31), ("bob", 31)]
    assert b"secret" not in repr(request).encode() and "[hidden]" in repr(request)


def test_many_users_are_described_in_linear_time() -> None:
    users = [str(number) for number in range(60_000)]
    assert len(describe(Cluster(), *users)) == len(users)
