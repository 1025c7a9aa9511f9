"""The same requests about delegation tokens to Apache Kafka and to Moldau, after the same logins.

Every step records what a client sees: error codes, principals, and timestamps relative to the creation. ACLs
and caches of Apache Kafka follow a change a little later, so the steps that depend on them are repeated.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from moldau.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from moldau.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from moldau.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from moldau.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.harness.security.login import (
    ALLOW,
    DELEGATION_TOKEN,
    DESCRIBE,
    USER,
    acl,
    create_acls,
    logged_in,
    scram_login,
)
from tests.harness.security.secured_node import SecuredNode
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]

CREATE_TOKENS, DESCRIBE_TOKENS = 13, 14
DAY_MS = 86_400_000


class Tokens:
    """The steps of a scene on one node, with what they returned."""

    def __init__(self, node: SecuredNode) -> None:
        self.node = node
        self.seen: list[tuple[str, Any]] = []

    def note(self, label: str, value: Any) -> None:
        self.seen.append((label, value))

    def create(
        self,
        label: str,
        wire: Wire,
        *renewers: tuple[str, str],
        owner: str | None = None,
        lifetime_ms: int = -1,
        version: int = 3,
    ) -> Any:
        request = CreateDelegationTokenRequest(
            owner_principal_type="" if owner is None else "User",
            owner_principal_name=owner or "",
            renewers=[CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in renewers],
            max_lifetime_ms=lifetime_ms,
        )
        answer = wire.call(request, version)
        principals = (
            (answer.principal_type, answer.principal_name),
            (answer.token_requester_principal_type, answer.token_requester_principal_name),
        )
        times = (
            answer.max_timestamp_ms - answer.issue_timestamp_ms,
            answer.expiry_timestamp_ms - answer.issue_timestamp_ms,
        )
        self.note(label, (answer.error_code, principals, times, len(answer.hmac), len(answer.token_id)))
        if answer.error_code == 0:
            eventually(lambda: self._logs_in(answer), what="the broker knows the token")
        return answer

    def _logs_in(self, token: Any) -> bool:
        wire = token_login(self.node, token)
        if isinstance(wire, int):
            return False
        wire.close()
        return True

    def renew(self, label: str, wire: Wire, token: Any, period_ms: int = -1, version: int = 2) -> None:
        answer = wire.call(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=period_ms), version)
        self._note_expiry(label, answer, token)

    def expire(self, label: str, wire: Wire, token: Any, period_ms: int = -1, version: int = 2) -> None:
        request = ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=period_ms)
        self._note_expiry(label, wire.call(request, version), token)

    def _note_expiry(self, label: str, answer: Any, token: Any) -> None:
        """Note the expiry in minutes after the creation."""
        after = round((answer.expiry_timestamp_ms - token.issue_timestamp_ms) / 60_000)
        self.note(label, (answer.error_code, after if answer.error_code == 0 else answer.expiry_timestamp_ms))

    def describe(self, label: str, wire: Wire, owners: list[str] | None, version: int = 3) -> list[Any]:
        named = None
        if owners is not None:
            named = [
                DescribeDelegationTokenOwner(principal_type="User", principal_name=each) for each in owners
            ]
        answer = wire.call(DescribeDelegationTokenRequest(owners=named), version)
        described = sorted(
            (
                each.principal_name,
                each.token_requester_principal_name,
                [(renewer.principal_type, renewer.principal_name) for renewer in each.renewers],
                each.max_timestamp - each.issue_timestamp,
            )
            for each in answer.tokens
        )
        self.note(label, (answer.error_code, described))
        return list(answer.tokens)


def token_login(node: SecuredNode, token: Any) -> Wire | int:
    password = base64.b64encode(token.hmac).decode()
    return scram_login(node, "SCRAM-SHA-256", token.token_id, password, token=True)


def remove_all(node: SecuredNode) -> None:
    with logged_in(node) as admin:

        def none_left() -> bool:
            answer = admin.call(DescribeDelegationTokenRequest(owners=None), 3)
            for token in answer.tokens:
                admin.call(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1), 2)
            for token in answer.tokens:
                owner = token.principal_name
                with logged_in(node, owner) as wire:
                    wire.call(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1), 2)
            return not answer.tokens

        eventually(none_left, what="no tokens are left")


def lifetimes(tokens: Tokens) -> None:
    with logged_in(tokens.node, "alice") as alice:
        for version in (1, 2, 3):
            tokens.create(f"v{version}", alice, version=version)
        tokens.create("short", alice, lifetime_ms=3_600_000)
        tokens.create("long", alice, lifetime_ms=365 * DAY_MS)
        tokens.create("zero", alice, lifetime_ms=0)
        tokens.create("renewers", alice, ("User", "bob"), ("User", "eve"))
        tokens.create("a group as renewer", alice, ("Group", "all"))
        tokens.describe("own", alice, ["alice"])
        tokens.describe("all", alice, None)
        tokens.describe("none", alice, [])


def renewals(tokens: Tokens) -> None:
    node = tokens.node
    with logged_in(node, "alice") as alice, logged_in(node, "bob") as bob, logged_in(node, "eve") as eve:
        token = tokens.create("token", alice, ("User", "bob"), lifetime_ms=2 * DAY_MS)
        for version in (1, 2):
            tokens.renew(f"v{version} by the owner", alice, token, version=version)
        tokens.renew("by the renewer", bob, token, 3_600_000)
        tokens.renew("zero", bob, token, 0)
        tokens.renew("longer than configured", bob, token, 5 * DAY_MS)
        tokens.renew("by another", eve, token)
        tokens.expire("by another", eve, token)
        tokens.expire("v1 later", bob, token, 7_200_000, version=1)
        tokens.expire("after the maximum", alice, token, 30 * DAY_MS)
        with logged_in(node) as admin:
            tokens.renew("by a super user", admin, token)
        for request in (
            RenewDelegationTokenRequest(hmac=b"unknown"),
            ExpireDelegationTokenRequest(hmac=b"", expiry_time_period_ms=-1),
        ):
            tokens.note(type(request).__name__, alice.call(request, 2).error_code)
        tokens.expire("now", alice, token)


def logins_with_tokens(tokens: Tokens) -> None:
    node = tokens.node
    with logged_in(node, "alice") as alice:
        token = tokens.create("token", alice, ("User", "alice"))
        wire = token_login(node, token)
        assert not isinstance(wire, int)
        with wire:
            tokens.create("with a token", wire)
            tokens.create("with a token, v1", wire, version=1)
            tokens.renew("with a token", wire, token)
            tokens.expire("with a token", wire, token)
            tokens.describe("with a token", wire, None)
        tokens.expire("now", alice, token)

        def refused() -> int:
            answer = token_login(node, token)
            return answer if isinstance(answer, int) else 0

        tokens.note("the code of a removed token", eventually(refused, what="the token is gone"))


def owners_and_permissions(tokens: Tokens) -> None:
    node = tokens.node
    with logged_in(node) as admin, logged_in(node, "alice") as alice, logged_in(node, "eve") as eve:
        tokens.create("denied", eve, owner="bob")
        tokens.create("for oneself", eve, owner="eve")
        tokens.create("by a super user", admin, ("User", "alice"), owner="bob")
        tokens.describe("as renewer", alice, None)
        tokens.describe("of others", alice, ["bob", "eve"])
        tokens.describe("a super user", admin, None)
        tokens.describe("a super user, one owner", admin, ["eve"])
        create_acls(
            node,
            acl("User:eve", CREATE_TOKENS, USER, "User:bob", permission=ALLOW),
            acl("User:eve", DESCRIBE_TOKENS, USER, "User:bob", permission=ALLOW),
        )
        request = CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="bob")
        eventually(lambda: eve.call(request, 3).error_code == 0, what="the ACL is in effect")
        eventually(
            lambda: len(eve.call(DescribeDelegationTokenRequest(owners=None), 3).tokens) == 3,
            what="the token is described",
        )
        tokens.describe("allowed by the owner", eve, None)
        token = tokens.create("alice's own", alice)
        create_acls(node, acl("User:eve", DESCRIBE, DELEGATION_TOKEN, token.token_id))
        eventually(
            lambda: len(eve.call(DescribeDelegationTokenRequest(owners=None), 3).tokens) == 4,
            what="the token is described",
        )
        tokens.describe("allowed by the token", eve, None)


SCENES: dict[str, Callable[[Tokens], None]] = {
    "lifetimes": lifetimes,
    "renewals": renewals,
    "logins with tokens": logins_with_tokens,
    "owners and permissions": owners_and_permissions,
}


@pytest.mark.parametrize("name", SCENES)
def test_tokens_are_answered_like_apache_kafka(
    name: str, secured_apache: SecuredNode, secured_moldau: SecuredNode
) -> None:
    transcripts = []
    for node in (secured_apache, secured_moldau):
        remove_all(node)
        tokens = Tokens(node)
        SCENES[name](tokens)
        transcripts.append(tokens.seen)
    theirs, ours = transcripts
    different = [
        f"[{label}] Apache {first}, Moldau {second}"
        for (label, first), (_, second) in zip(theirs, ours, strict=True)
        if first != second
    ]
    assert not different, "\n" + "\n".join(different)
