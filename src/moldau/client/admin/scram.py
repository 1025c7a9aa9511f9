"""SCRAM credentials of users (KIP-554), with the names of Java's admin client.

Only a salted password is sent; the password itself stays in the client.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check, error_of
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

_SALT_BYTES = 24


class ScramMechanism(IntEnum):
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        return self.name.replace("_", "-")

    @property
    def digest(self) -> str:
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    @classmethod
    def from_mechanism_name(cls, name: str) -> ScramMechanism:
        return cls[name.replace("-", "_")]


class ScramCredentialInfo(NamedTuple):
    mechanism: ScramMechanism
    #: 4096 to 16384.
    iterations: int


class UserScramCredentialsDescription(NamedTuple):
    name: str
    credential_infos: list[ScramCredentialInfo]


@dataclass(frozen=True, slots=True)
class UserScramCredentialUpsertion:
    """Set the credential of a user for one mechanism; without `salt`, a random one is used."""

    user: str
    credential_info: ScramCredentialInfo
    password: str | bytes = field(repr=False)
    salt: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class UserScramCredentialDeletion:
    user: str
    mechanism: ScramMechanism


UserScramCredentialAlteration = UserScramCredentialUpsertion | UserScramCredentialDeletion


async def describe_user_scram_credentials(
    cluster: Cluster, users: Iterable[str] = ()
) -> dict[str, UserScramCredentialsDescription | KafkaError]:
    """Return mechanisms and iterations of these users, or of all; unknown users are left out."""
    names = [UserName(name=user) for user in users]
    request = DescribeUserScramCredentialsRequest(users=names or None)
    answer: DescribeUserScramCredentialsResponse = await cluster.retry(lambda: cluster.ask_any(request))
    check(answer.error_code, answer.error_message)
    results: dict[str, UserScramCredentialsDescription | KafkaError] = {}
    for result in answer.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        if result.error_code:
            results[result.user] = error_of(result.error_code, result.error_message)
        else:
            infos = [
                ScramCredentialInfo(ScramMechanism(info.mechanism), info.iterations)
                for info in result.credential_infos
            ]
            results[result.user] = UserScramCredentialsDescription(result.user, infos)
    return results


async def alter_user_scram_credentials(
    cluster: Cluster, alterations: Sequence[UserScramCredentialAlteration]
) -> dict[str, KafkaError | None]:
    """Set and delete credentials; return the error of each user, or None.

    A user may be altered once per request; a user with an invalid alteration is not changed at all.
    """
    results: dict[str, KafkaError | None] = {}
    for alteration in alterations:
        error = _illegal(alteration)
        if error is not None:
            results[alteration.user] = error
    accepted = [alteration for alteration in alterations if alteration.user not in results]
    if not accepted:
        return results
    request = AlterUserScramCredentialsRequest(
        deletions=[
            ScramCredentialDeletion(name=each.user, mechanism=each.mechanism)
            for each in accepted
            if isinstance(each, UserScramCredentialDeletion)
        ],
        upsertions=[_upsertion(each) for each in accepted if isinstance(each, UserScramCredentialUpsertion)],
    )
    answer: AlterUserScramCredentialsResponse = await cluster.retry(lambda: cluster.ask_controller(request))
    for result in answer.results:
        failed = result.error_code != ErrorCode.NONE
        results[result.user] = error_of(result.error_code, result.error_message) if failed else None
    return results


def _illegal(alteration: UserScramCredentialAlteration) -> KafkaError | None:
    if not alteration.user:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if isinstance(alteration, UserScramCredentialUpsertion) and not alteration.password:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Password must not be empty")
    return None


def _upsertion(alteration: UserScramCredentialUpsertion) -> ScramCredentialUpsertion:
    mechanism, iterations = alteration.credential_info
    password, salt = alteration.password, alteration.salt
    if salt is None:
        salt = secrets.token_bytes(_SALT_BYTES)
    if isinstance(password, str):
        password = password.encode()
    return ScramCredentialUpsertion(
        name=alteration.user,
        mechanism=mechanism,
        iterations=iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(mechanism.digest, password, salt, max(iterations, 1)),
    )
