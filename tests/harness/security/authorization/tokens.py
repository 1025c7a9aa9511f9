"""Cases of requests about delegation tokens."""

from __future__ import annotations

from typing import Any

from moldau.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from moldau.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from moldau.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from moldau.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from moldau.security.acl.enums import AclOperation, ResourceType
from tests.harness.security.authorization.case import Acl, Case, Outcome, cluster

TOKEN_DENIED: Outcome = (65,)
_NOT_FOUND: Outcome = (62,)


def create(owner: str = "") -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(
        owner_principal_type="User" if owner else None,
        owner_principal_name=owner or None,
        renewers=[],
        max_lifetime_ms=-1,
    )


def _user(operation: str, name: str) -> Acl:
    return Acl(AclOperation[operation], ResourceType.USER, name)


def _owners(response: Any) -> Outcome:
    """Return whether the token of the administrator is visible."""
    return (response.error_code, *sorted({each.principal_name for each in response.tokens} & {"admin"}))


CASES: list[Case] = [
    Case("CreateDelegationToken", 3, lambda world: create(), ()),
    Case(
        "CreateDelegationToken of another user",
        3,
        lambda world: create("owner"),
        TOKEN_DENIED,
        (_user("CREATE_TOKENS", "User:owner"),),
        also=(((_user("DESCRIBE_TOKENS", "User:owner"), cluster("ALL")), TOKEN_DENIED),),
    ),
    Case(
        "RenewDelegationToken",
        2,
        lambda world: RenewDelegationTokenRequest(hmac=b"unknown", renew_period_ms=-1),
        _NOT_FOUND,
    ),
    Case(
        "ExpireDelegationToken",
        2,
        lambda world: ExpireDelegationTokenRequest(hmac=b"unknown", expiry_time_period_ms=-1),
        _NOT_FOUND,
    ),
    Case(
        "DescribeDelegationToken",
        3,
        lambda world: DescribeDelegationTokenRequest(owners=None),
        (0,),
        (_user("DESCRIBE_TOKENS", "User:admin"),),
        allowed=(0, "admin"),
        also=(
            ((Acl(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, "*"),), (0, "admin")),
            ((_user("CREATE_TOKENS", "User:admin"),), (0,)),
        ),
        observe=_owners,
    ),
]
