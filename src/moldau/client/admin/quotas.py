"""Client quotas and SCRAM credentials."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check, error_of
from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    RequestEntryData,
)
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from moldau.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

#: Pairs of entity type ("user", "client-id", "ip") and name; None stands for the default entity.
QuotaEntity = tuple[tuple[str, str | None], ...]


class MatchType(IntEnum):
    EXACT = 0
    DEFAULT = 1
    ANY = 2


class QuotaFilter(NamedTuple):
    entity_type: str
    match_type: MatchType
    match: str | None = None


class ScramMechanism(IntEnum):
    SHA_256 = 1
    SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        return "SCRAM-" + self.name.replace("_", "-")

    @property
    def digest(self) -> str:
        return "sha256" if self is ScramMechanism.SHA_256 else "sha512"


MINIMUM_SCRAM_ITERATIONS = 4096


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """A password to store as a SCRAM credential; only its salted hash is sent."""

    mechanism: ScramMechanism
    iterations: int
    password: str


async def describe_client_quotas(
    cluster: Cluster, components: Sequence[QuotaFilter], *, strict: bool = True
) -> dict[QuotaEntity, dict[str, float]]:
    """Return the quotas of matching entities; `strict` excludes entities with further components."""
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=c.entity_type, match_type=c.match_type, match=c.match)
            for c in components
        ],
        strict=strict,
    )
    answer: DescribeClientQuotasResponse = await cluster.retry(lambda: cluster.ask_any(request))
    check(answer.error_code, answer.error_message)
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries or []
    }


async def alter_client_quotas(
    cluster: Cluster, entity: QuotaEntity, values: Mapping[str, float | None]
) -> None:
    """Set quotas of an entity; None removes one."""
    request = AlterClientQuotasRequest(
        entries=[
            RequestEntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                ops=[
                    OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()
                ],
            )
        ]
    )
    answer: AlterClientQuotasResponse = await cluster.retry(lambda: cluster.ask_controller(request))
    for entry in answer.entries:
        check(entry.error_code, entry.error_message)


async def describe_user_scram_credentials(
    cluster: Cluster, users: Iterable[str]
) -> dict[str, list[tuple[ScramMechanism, int]] | KafkaError]:
    """Return mechanisms and iterations of these users, or of all; unknown users are left out."""
    names = [UserName(name=user) for user in users]
    request = DescribeUserScramCredentialsRequest(users=names or None)
    answer: DescribeUserScramCredentialsResponse = await cluster.retry(lambda: cluster.ask_any(request))
    check(answer.error_code, answer.error_message)
    results: dict[str, list[tuple[ScramMechanism, int]] | KafkaError] = {}
    for result in answer.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        if result.error_code:
            results[result.user] = error_of(result.error_code, result.error_message)
        else:
            infos = [(ScramMechanism(info.mechanism), info.iterations) for info in result.credential_infos]
            results[result.user] = infos
    return results


async def alter_user_scram_credentials(
    cluster: Cluster,
    user: str,
    upserts: Iterable[ScramCredential] = (),
    deletions: Iterable[ScramMechanism] = (),
) -> None:
    request = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name=user, mechanism=mechanism) for mechanism in deletions],
        upsertions=[_upsertion(user, credential) for credential in upserts],
    )
    answer: AlterUserScramCredentialsResponse = await cluster.retry(lambda: cluster.ask_controller(request))
    for result in answer.results:
        check(result.error_code, result.error_message)


def _upsertion(user: str, credential: ScramCredential) -> ScramCredentialUpsertion:
    salt = secrets.token_bytes(24)
    salted = hashlib.pbkdf2_hmac(
        credential.mechanism.digest, credential.password.encode(), salt, credential.iterations
    )
    return ScramCredentialUpsertion(
        name=user,
        mechanism=credential.mechanism,
        iterations=credential.iterations,
        salt=salt,
        salted_password=salted,
    )
