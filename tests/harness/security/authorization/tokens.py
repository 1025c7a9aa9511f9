"""Delegation tokens; `tests/interop/security/test_tokens.py` compares which tokens a user may describe."""

from __future__ import annotations

from moldau.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from moldau.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from moldau.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from moldau.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from moldau.security.acl.enums import AclOperation, ResourceType
from tests.harness.security.authorization.case import SUCCESS, Acl, Case, Outcome, World

TOKENS_DENIED: Outcome = (65,)
_NOT_FOUND: Outcome = (62,)


def _create_for_another(world: World) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name=f"owner-{world.user}", max_lifetime_ms=-1
    )


CASES: list[Case] = [
    Case(
        "CreateDelegationToken for another",
        3,
        _create_for_another,
        TOKENS_DENIED,
        (Acl(AclOperation.CREATE_TOKENS, ResourceType.USER, "User:owner-{user}"),),
    ),
    Case(
        "CreateDelegationToken for oneself",
        3,
        lambda world: CreateDelegationTokenRequest(max_lifetime_ms=-1),
        SUCCESS,
    ),
    Case("RenewDelegationToken", 2, lambda world: RenewDelegationTokenRequest(hmac=b"none"), _NOT_FOUND),
    Case("ExpireDelegationToken", 2, lambda world: ExpireDelegationTokenRequest(hmac=b"none"), _NOT_FOUND),
    Case("DescribeDelegationToken", 3, lambda world: DescribeDelegationTokenRequest(owners=None), SUCCESS),
]
