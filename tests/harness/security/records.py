"""Users, delegation tokens and ACLs in the metadata of a `SecuredNode`: changes, logins and decisions.

A `SecurityLedger` records what it has changed, so that the next broker on the same folder can be checked for
it: the same descriptions, the same logins, the same decisions.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from moldau.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from moldau.protocol.messages.describe_acls import DescribeAclsRequest
from moldau.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from moldau.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.protocol.schema import Message, Struct
from tests.harness.security import login
from tests.harness.security.login import acl, create_acls, logged_in, scram_login
from tests.harness.security.scram import HASHES
from tests.harness.security.secured_node import USERS, SecuredNode
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import fetch_request, produce_request
from tests.harness.wire.wire import Wire

_MECHANISM_CODES = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_ITERATIONS = 4096
_ANY = 1
TOPICS = ("orders", "orders-eu", "payments", "closed")
_REFUSED = 58


class SecurityLedger:
    def __init__(self) -> None:
        #: Passwords by mechanism and user, and the HMACs of tokens by id.
        self.passwords = {(mechanism, user): secret for mechanism in HASHES for user, secret in USERS.items()}
        self.tokens: dict[str, str] = {}
        self.deleted: list[tuple[str, str]] = []

    def work(self, node: SecuredNode, turn: int) -> None:
        """Change users, tokens and ACLs: create, replace, delete."""
        new = f"user-{turn}"
        for mechanism in HASHES:
            self._set_password(node, mechanism, new, f"secret-{turn}")
        self._set_password(node, "SCRAM-SHA-512", "eve", f"changed-{turn}")
        if turn:
            self._delete_user(node, "SCRAM-SHA-256", f"user-{turn - 1}")
        self._create_token(node, new)
        self._create_acls(node, turn)

    def check(self, node: SecuredNode) -> None:
        """Check every login."""
        for (mechanism, user), secret in self.passwords.items():
            _check_login(scram_login(node, mechanism, user, secret), f"{user}, {mechanism}")
            assert scram_login(node, mechanism, user, secret + "x") == _REFUSED
        for mechanism, user in self.deleted:
            assert scram_login(node, mechanism, user, "secret") == _REFUSED
        for token_id, secret in self.tokens.items():
            for mechanism in HASHES:
                _check_login(scram_login(node, mechanism, token_id, secret, token=True), token_id)

    def _set_password(self, node: SecuredNode, mechanism: str, user: str, password: str) -> None:
        salt = hashlib.sha256(password.encode()).digest()
        salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, _ITERATIONS)
        upsertion = ScramCredentialUpsertion(
            name=user,
            mechanism=_MECHANISM_CODES[mechanism],
            iterations=_ITERATIONS,
            salt=salt,
            salted_password=salted,
        )
        _alter_users(node, AlterUserScramCredentialsRequest(upsertions=[upsertion]))
        self.passwords[mechanism, user] = password
        # Credentials are applied shortly after the answer.
        eventually(lambda: _can_log_in(node, mechanism, user, password), what=f"{user} can log in")

    def _delete_user(self, node: SecuredNode, mechanism: str, user: str) -> None:
        deletion = ScramCredentialDeletion(name=user, mechanism=_MECHANISM_CODES[mechanism])
        _alter_users(node, AlterUserScramCredentialsRequest(deletions=[deletion]))
        del self.passwords[mechanism, user]
        self.deleted.append((mechanism, user))

    def _create_token(self, node: SecuredNode, renewer: str) -> None:
        renewers = [CreatableRenewers(principal_type="User", principal_name=renewer)]
        with logged_in(node, "alice") as wire:
            request = CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=86_400_000)
            answer = wire.call(request, 3)
        assert answer.error_code == 0, answer
        secret = base64.b64encode(answer.hmac).decode()
        self.tokens[answer.token_id] = secret
        eventually(
            lambda: _can_log_in(node, "SCRAM-SHA-256", answer.token_id, secret, token=True),
            what="the token can be used",
        )

    def _create_acls(self, node: SecuredNode, turn: int) -> None:
        user = f"User:{('alice', 'bob', 'eve')[turn % 3]}"
        create_acls(
            node,
            acl(user, login.READ, login.TOPIC, "orders", pattern_type=login.PREFIXED),
            acl(user, login.WRITE, login.TOPIC, "orders-eu"),
            acl("User:*", login.DESCRIBE, login.TOPIC, "payments", host="127.0.0.1"),
            acl(user, login.ALL, login.TOPIC, "closed", permission=login.DENY),
            acl(user, login.ALL, login.GROUP, f"temporary-{turn}"),
        )
        chosen = DeleteAclsFilter(
            resource_type_filter=login.GROUP,
            resource_name_filter=f"temporary-{turn - 1}",
            pattern_type_filter=login.LITERAL,
            operation=_ANY,
            permission_type=_ANY,
        )
        with logged_in(node) as wire:
            answer = wire.call(DeleteAclsRequest(filters=[chosen]), 3)
        assert answer.filter_results[0].error_code == 0, answer


def descriptions(node: SecuredNode) -> dict[str, Any]:
    """Return all users, tokens and ACLs as the node describes them."""
    acls = DescribeAclsRequest(
        resource_type_filter=_ANY, pattern_type_filter=_ANY, operation=_ANY, permission_type=_ANY
    )
    requests: dict[str, tuple[Message, int]] = {
        "users": (DescribeUserScramCredentialsRequest(users=None), 0),
        "tokens": (DescribeDelegationTokenRequest(owners=None), 3),
        "ACLs": (acls, 3),
    }
    with logged_in(node) as wire:
        return {name: _plain(wire.call(*request)) for name, request in requests.items()}


def decisions(node: SecuredNode) -> dict[tuple[str, str, str], int]:
    """Return the error codes of users who describe, write to and read from topics."""
    codes = {}
    for user in USERS:
        with logged_in(node, user) as wire:
            for topic in TOPICS:
                codes[user, topic, "describe"] = _describe(wire, topic)
                produced = wire.call(produce_request(topic, batch()), 12).responses[0]
                codes[user, topic, "write"] = produced.partition_responses[0].error_code
                fetched = wire.call(fetch_request(topic), 12).responses[0]
                codes[user, topic, "read"] = fetched.partitions[0].error_code
    return codes


def _describe(wire: Wire, topic: str) -> int:
    answer = wire.call(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 9)
    return int(answer.topics[0].error_code)


def _alter_users(node: SecuredNode, request: AlterUserScramCredentialsRequest) -> None:
    with logged_in(node) as wire:
        answer = wire.call(request, 0)
    assert [each.error_code for each in answer.results] == [0], answer


def _can_log_in(node: SecuredNode, mechanism: str, user: str, secret: str, *, token: bool = False) -> bool:
    result = scram_login(node, mechanism, user, secret, token=token)
    if isinstance(result, int):
        return False
    result.close()
    return True


def _check_login(result: Wire | int, what: str) -> None:
    assert isinstance(result, Wire), f"{what}: error {result}"
    result.close()


def _plain(value: Any) -> Any:
    """Return a response as plain data in an order of its own; no message is an empty one."""
    if isinstance(value, Struct):
        return {field.name: _plain(getattr(value, field.name)) for field in value.FIELDS}
    if isinstance(value, list | tuple):
        return sorted(map(_plain, value), key=repr)
    return "" if value is None else value
