"""Roles from the claims of a user."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.console.login.roles import Role, RoleRules
from moldau.console.routes import ROUTES

VALUES = {
    Role.VIEWER: frozenset({"readers"}),
    Role.EDITOR: frozenset({"writers", "developers"}),
    Role.ADMIN: frozenset({"admins"}),
}


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({"roles": ["readers"]}, Role.VIEWER),
        ({"roles": "developers"}, Role.EDITOR),
        ({"roles": ["readers", "admins", 7, None]}, Role.ADMIN),
        ({"roles": ["others"]}, None),
        ({"roles": {"admins": True}}, None),
        ({"roles": []}, None),
        ({"groups": ["admins"]}, None),
        ({}, None),
    ],
)
def test_the_highest_role_that_is_granted(claims: dict[str, Any], role: Role | None) -> None:
    assert RoleRules("roles", VALUES).role(claims) is role


def test_a_claim_is_found_by_its_name_or_its_path() -> None:
    nested = {"resource_access": {"console": {"roles": ["admins"]}}}
    assert RoleRules("resource_access.console.roles", VALUES).role(nested) is Role.ADMIN
    assert RoleRules("https://example.com/roles", VALUES).role({"https://example.com/roles": ["readers"]})
    assert RoleRules("resource_access.other.roles", VALUES).role(nested) is None
    assert RoleRules("roles.x", VALUES).role({"roles": ["admins"]}) is None


def test_a_star_grants_a_role_to_every_user() -> None:
    rules = RoleRules("roles", {**VALUES, Role.VIEWER: frozenset({"*"})})
    assert rules.role({}) is Role.VIEWER
    assert rules.role({"roles": ["admins"]}) is Role.ADMIN


def test_every_change_needs_a_role_that_fits_it() -> None:
    harmless = {"/groups/{group}/reset/preview", "/schemas/{subject}/check"}
    for action in ROUTES:
        if action.method == "GET":
            assert action.role is Role.VIEWER or action.path == "/sql/{run}"
        elif action.path in harmless:
            assert action.role is Role.VIEWER
        elif action.path.endswith("/delete") or action.path.startswith(
            ("/acls", "/users", "/quotas", "/brokers")
        ):
            assert action.role is Role.ADMIN, action.path
        else:
            assert action.role is Role.EDITOR, action.path


def test_values_of_secrets_and_records_are_not_audited() -> None:
    for action in ROUTES:
        assert not {"password", "config", "headers", "header_value"} & set(action.audited)
        if "messages" in action.path or "brokers" in action.path:
            assert not {"key", "value"} & set(action.audited)
