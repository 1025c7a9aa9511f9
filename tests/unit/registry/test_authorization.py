"""ACLs of the registry: literal and prefixed subjects, deny before allow, nothing without a rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.config.definition import ConfigError
from moldau.http.errors import ApiError
from moldau.registry.authorization import Authorizer, Operation
from moldau.security.principal import KafkaPrincipal

ALICE, BOB, ROOT = (KafkaPrincipal("User", name) for name in ("alice", "bob", "root"))
RULES = """
# a comment
allow User:alice SUBJECT_READ,SUBJECT_WRITE orders-*
allow User:alice SUBJECT_READ customers   # literal
allow User:*     GLOBAL_READ  *
allow User:bob   *            *
deny  User:bob   SUBJECT_DELETE :.secret:*
"""


@pytest.fixture
def authorizer(tmp_path: Path) -> Authorizer:
    file = tmp_path / "acls"
    file.write_text(RULES)
    found = Authorizer.from_properties(
        {"schema.registry.acl.file": str(file), "schema.registry.super.users": "User:root"}
    )
    assert found is not None
    return found


def test_rules(authorizer: Authorizer) -> None:
    assert authorizer.allows(ALICE, Operation.SUBJECT_WRITE, "orders-value")
    assert not authorizer.allows(ALICE, Operation.SUBJECT_WRITE, "customers")
    assert authorizer.allows(ALICE, Operation.SUBJECT_READ, "customers")
    assert not authorizer.allows(ALICE, Operation.SUBJECT_READ, "customers-value")
    assert not authorizer.allows(ALICE, Operation.SUBJECT_READ, ":.ctx:orders-value")
    assert not authorizer.allows(ALICE, Operation.SUBJECT_DELETE, "orders-value")
    assert authorizer.allows(ALICE, Operation.GLOBAL_READ)
    assert not authorizer.allows(ALICE, Operation.GLOBAL_COMPATIBILITY_WRITE)
    assert authorizer.allows(BOB, Operation.SUBJECT_DELETE, "orders-value")
    assert not authorizer.allows(BOB, Operation.SUBJECT_DELETE, ":.secret:orders")
    assert authorizer.allows(ROOT, Operation.GLOBAL_MODE_WRITE)


def test_a_denial_names_operation_and_subject(authorizer: Authorizer) -> None:
    with pytest.raises(ApiError) as denied:
        authorizer.authorize(ALICE, Operation.SUBJECT_DELETE, "orders-value")
    assert (denied.value.status, denied.value.error_code) == (403, 40301)
    assert denied.value.message == "User is denied operation SUBJECT_DELETE on Subject: orders-value"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("allow User:a", "is not of the form"),
        ("maybe User:a * *", "is not of the form"),
        ("allow alice * *", "is not a principal"),
        ("allow User:a SUBJECT_PAINT x", "is not an operation"),
    ],
)
def test_invalid_rules_are_named(rule: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Authorizer.from_properties({"schema.registry.acl.rules": rule})


def test_without_rules_there_is_no_authorizer() -> None:
    assert Authorizer.from_properties({}) is None
