"""Delegation tokens (KIP-48), with the names of Java's admin client.

Tokens can be requested only over a connection that has authenticated with something else than a token. The
HMAC is the secret: its base64 is the password of a SCRAM login with the token's id and `tokenauth=true`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field

from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check
from moldau.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from moldau.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from moldau.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from moldau.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from moldau.security.principal import KafkaPrincipal


@dataclass(frozen=True, slots=True)
class TokenInformation:
    token_id: str
    owner: KafkaPrincipal
    token_requester: KafkaPrincipal
    renewers: tuple[KafkaPrincipal, ...]
    issue_timestamp: int
    max_timestamp: int
    expiry_timestamp: int


@dataclass(frozen=True, slots=True)
class DelegationToken:
    token_info: TokenInformation
    hmac: bytes = field(repr=False)

    @property
    def hmac_as_base64_string(self) -> str:
        return base64.b64encode(self.hmac).decode("ascii")


async def create_delegation_token(
    cluster: Cluster,
    *,
    renewers: Iterable[KafkaPrincipal] = (),
    owner: KafkaPrincipal | None = None,
    max_lifetime_ms: int = -1,
) -> DelegationToken:
    """Create a token of this user, or of another (KIP-373); -1 stands for the cluster's maximum lifetime."""
    chosen = tuple(renewers)
    request = CreateDelegationTokenRequest(
        renewers=[CreatableRenewers(principal_type=each.type, principal_name=each.name) for each in chosen],
        max_lifetime_ms=max_lifetime_ms,
    )
    if owner is not None:
        request.owner_principal_type, request.owner_principal_name = owner.type, owner.name
    answer: CreateDelegationTokenResponse = await cluster.retry(lambda: cluster.ask_any(request))
    check(answer.error_code)
    information = TokenInformation(
        token_id=answer.token_id,
        owner=KafkaPrincipal(answer.principal_type, answer.principal_name),
        token_requester=KafkaPrincipal(
            answer.token_requester_principal_type, answer.token_requester_principal_name
        ),
        renewers=chosen,
        issue_timestamp=answer.issue_timestamp_ms,
        max_timestamp=answer.max_timestamp_ms,
        expiry_timestamp=answer.expiry_timestamp_ms,
    )
    return DelegationToken(information, bytes(answer.hmac))


async def renew_delegation_token(cluster: Cluster, hmac: bytes, *, renew_time_period_ms: int = -1) -> int:
    """Renew a token and return its expiry timestamp; -1 stands for `delegation.token.expiry.time.ms`."""
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=renew_time_period_ms)
    answer: RenewDelegationTokenResponse = await cluster.retry(lambda: cluster.ask_any(request))
    check(answer.error_code)
    return answer.expiry_timestamp_ms


async def expire_delegation_token(cluster: Cluster, hmac: bytes, *, expiry_time_period_ms: int = -1) -> int:
    """Set when a token expires and return the timestamp; a negative period removes the token at once."""
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=expiry_time_period_ms)
    answer: ExpireDelegationTokenResponse = await cluster.retry(lambda: cluster.ask_any(request))
    check(answer.error_code)
    return answer.expiry_timestamp_ms


async def describe_delegation_token(
    cluster: Cluster, owners: Iterable[KafkaPrincipal] | None = None
) -> list[DelegationToken]:
    """Return the tokens of these owners, or all that this user may see."""
    request = DescribeDelegationTokenRequest(owners=None)
    if owners is not None:
        request.owners = [
            DescribeDelegationTokenOwner(principal_type=each.type, principal_name=each.name)
            for each in owners
        ]
    answer: DescribeDelegationTokenResponse = await cluster.retry(lambda: cluster.ask_any(request))
    check(answer.error_code)
    return [_token(described) for described in answer.tokens]


def _token(described: DescribedDelegationToken) -> DelegationToken:
    information = TokenInformation(
        token_id=described.token_id,
        owner=KafkaPrincipal(described.principal_type, described.principal_name),
        token_requester=KafkaPrincipal(
            described.token_requester_principal_type, described.token_requester_principal_name
        ),
        renewers=tuple(
            KafkaPrincipal(each.principal_type, each.principal_name) for each in described.renewers
        ),
        issue_timestamp=described.issue_timestamp,
        max_timestamp=described.max_timestamp,
        expiry_timestamp=described.expiry_timestamp,
    )
    return DelegationToken(information, bytes(described.hmac))
