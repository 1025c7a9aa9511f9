"""Logins over a plain connection, step by step, for requests that no client library sends."""

from __future__ import annotations

import uuid
from typing import Any

from moldau.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.harness.security.scram import HASHES, Scram
from tests.harness.security.secured_node import ADMIN, USERS, SecuredNode
from tests.harness.wire.wire import Wire

#: Codes of resource types, operations, permissions and pattern types (KIP-140, KIP-290).
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = 2, 3, 4, 5, 6, 7
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 2, 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12
DENY, ALLOW = 2, 3
LITERAL, PREFIXED = 3, 4
CLUSTER_NAME = "kafka-cluster"
_PATIENCE_SECONDS = 20.0


def plain_token(user: str, password: str | None = None, authorization_id: str = "") -> bytes:
    secret = USERS[user] if password is None else password
    return f"{authorization_id}\0{user}\0{secret}".encode()


def logged_in(
    node: SecuredNode, user: str = ADMIN, password: str | None = None, *, listener: str = "SASL_PLAINTEXT"
) -> Wire:
    """Open a connection and log in with PLAIN."""
    return log_in(Wire(node.address(listener), timeout=_PATIENCE_SECONDS), user, password)


def log_in(wire: Wire, user: str, password: str | None = None) -> Wire:
    """Log in with PLAIN on an open connection."""
    handshake = wire.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert handshake.error_code == 0, handshake
    answer = wire.call(SaslAuthenticateRequest(auth_bytes=plain_token(user, password)), 2)
    assert answer.error_code == 0, answer
    return wire


def scram_login(
    node: SecuredNode, mechanism: str, user: str, password: str, *, token: bool = False
) -> Wire | int:
    """Log in with SCRAM, as a user or with a delegation token; return the connection, or the error code."""
    wire = Wire(node.address("SASL_PLAINTEXT"), timeout=_PATIENCE_SECONDS)
    scram = Scram(user, password, HASHES[mechanism])
    handshake = wire.call(SaslHandshakeRequest(mechanism=mechanism), 1)
    assert handshake.error_code == 0, handshake
    first = scram.first(extensions=",tokenauth=true" if token else "")
    answer = wire.call(SaslAuthenticateRequest(auth_bytes=first), 2)
    if answer.error_code == 0:
        answer = wire.call(SaslAuthenticateRequest(auth_bytes=scram.final(answer.auth_bytes)), 2)
    if answer.error_code == 0:
        return wire
    wire.close()
    return int(answer.error_code)


def acl(
    principal: str,
    operation: int,
    resource_type: int,
    name: str,
    *,
    pattern_type: int = LITERAL,
    permission: int = ALLOW,
    host: str = "*",
) -> AclCreation:
    return AclCreation(
        resource_type=resource_type,
        resource_name=name,
        resource_pattern_type=pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def create_acls(node: SecuredNode, *creations: AclCreation) -> Any:
    """Create ACLs as the super user."""
    with logged_in(node) as wire:
        answer = wire.call(CreateAclsRequest(creations=list(creations)), 3)
    assert [each.error_code for each in answer.results] == [0] * len(creations), answer
    return answer


def open_prefix(node: SecuredNode) -> str:
    """Let every principal use topics and groups with a new prefix; return it."""
    prefix = f"open-{uuid.uuid4().hex[:8]}-"
    rules = [acl("User:*", ALL, kind, prefix, pattern_type=PREFIXED) for kind in (TOPIC, GROUP)]
    create_acls(node, *rules)
    return prefix
