"""ACLs of the registry: literal and prefixed subjects, deny before allow, nothing without a rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moldau.config.definition import ConfigError
from moldau.http.asgi import PRINCIPAL
from moldau.http.errors import ApiError
from moldau.registry.api.application import RegistryApplication
from moldau.registry.api.metadata import ServerMetadata
from moldau.registry.authorization import Authorizer, Operation
from moldau.security.principal import KafkaPrincipal
from tests.harness.registry.application import ask
from tests.unit.registry.requests import TestRegistry, on_a_loop

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


@pytest.mark.parametrize("permission", ["allow", "deny"])
def test_all_operations_of_some_subjects_are_not_those_of_the_registry(permission: str) -> None:
    rules = f"allow User:bob * *; {permission} User:bob * orders-*; allow User:alice * orders-*"
    found = Authorizer.from_properties({"schema.registry.acl.rules": rules})
    assert found is not None
    assert found.allows(ALICE, Operation.SUBJECT_DELETE, "orders-value")
    assert not any(found.allows(ALICE, each) for each in Operation if each.startswith("GLOBAL_"))
    assert all(found.allows(BOB, each) for each in Operation if each.startswith("GLOBAL_"))
    assert found.allows(BOB, Operation.SUBJECT_READ, "orders-value") == (permission == "allow")


async def _statuses(rules: str, *requests: tuple[str, str, object]) -> list[int]:
    """Return how the requests of Alice are answered."""
    registry = await TestRegistry().start()
    await registry.register("orders", '"string"')
    for schema in ('"string"', '"int"'):
        await registry.register(":.secret:orders", schema)
    authorizer = Authorizer.from_properties({"schema.registry.acl.rules": rules})
    application = RegistryApplication(registry.service, ServerMetadata("cluster", "group", "1.0"), authorizer)
    answers = [await ask(application, *request, **{PRINCIPAL: ALICE}) for request in requests]
    return [answer.status for answer in answers]


@on_a_loop
async def test_settings_of_the_registry_need_permission_for_the_registry() -> None:
    level, mode = {"compatibility": "FULL"}, {"mode": "READONLY"}
    denied = [
        (method, f"/{kind}/{scope}", body)
        for scope in (":.:", ":.__GLOBAL:")
        for method, kind, body in (("PUT", "config", level), ("PUT", "mode", mode), ("GET", "config", None))
    ]
    rules = "allow User:alice SUBJECT_COMPATIBILITY_READ,SUBJECT_COMPATIBILITY_WRITE,SUBJECT_MODE_WRITE *"
    assert await _statuses(rules, *denied) == [403] * len(denied)
    assert await _statuses(rules, ("PUT", "/config/orders", level)) == [200]
    granted = "allow User:alice GLOBAL_COMPATIBILITY_WRITE *"
    assert await _statuses(granted, ("PUT", "/config/:.:", level)) == [200]


@on_a_loop
async def test_the_search_in_other_contexts_needs_permission_for_the_subject_found() -> None:
    requests: list[tuple[str, str, object]] = [
        ("GET", "/subjects/orders/versions/1", None),
        ("POST", "/subjects/orders", {"schema": '"string"'}),
        ("GET", "/subjects/orders/versions/2", None),
        ("GET", "/subjects/orders/versions/2/schema", None),
        ("GET", "/subjects/orders/versions/2/referencedby", None),
        ("POST", "/subjects/orders", {"schema": '"int"'}),
    ]
    rule = "allow User:alice SUBJECT_READ orders"
    assert await _statuses(rule, *requests) == [200, 200, 403, 403, 403, 403]
    assert await _statuses(f"{rule}; allow User:alice SUBJECT_READ :.secret:*", *requests) == [200] * 6


@on_a_loop
async def test_responses_are_kept_for_the_principal_that_may_see_them() -> None:
    registry = await TestRegistry().start()
    await registry.register("orders", '"string"')
    await registry.register("orders", '"int"')
    rules = "allow User:alice SUBJECT_READ orders; allow User:bob SUBJECT_READ,SUBJECT_DELETE orders"
    authorizer = Authorizer.from_properties({"schema.registry.acl.rules": rules})
    application = RegistryApplication(registry.service, ServerMetadata("cluster", "group", "1.0"), authorizer)
    reads = 0
    read = registry.service.read

    async def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal reads
        reads += 1
        return await read(*arguments, **options)

    registry.service.read = counted  # type: ignore[method-assign]

    async def status(principal: KafkaPrincipal, method: str, path: str) -> int:
        return (await ask(application, method, path, **{PRINCIPAL: principal})).status

    path = "/subjects/orders/versions/1"
    assert [await status(ALICE, "GET", path) for _ in range(3)] == [200] * 3
    assert reads == 1
    eve = KafkaPrincipal("User", "eve")
    assert [await status(eve, "GET", path) for _ in range(2)] == [403, 403]
    assert [await status(BOB, "GET", path) for _ in range(2)] == [200, 200]
    assert reads == 2
    assert await status(BOB, "DELETE", path) == 200
    assert await status(ALICE, "GET", path) == 404
    assert await status(ALICE, "DELETE", "/subjects/orders/versions/2") == 403


@on_a_loop
async def test_the_target_of_an_alias_is_searched_with_permission_only() -> None:
    rules = "allow User:alice SUBJECT_READ,SUBJECT_COMPATIBILITY_WRITE o*"
    alias = ("PUT", "/config/other", {"alias": "orders"})
    assert await _statuses(
        rules, alias, ("GET", "/subjects/other/versions/1", None), ("GET", "/subjects/other/versions/2", None)
    ) == [200, 200, 403]


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


@on_a_loop
async def test_an_id_that_is_no_number_is_not_found() -> None:
    registry = await TestRegistry().start()
    authorizer = Authorizer.from_properties({"schema.registry.acl.rules": "allow User:alice SUBJECT_READ *"})
    application = RegistryApplication(registry.service, ServerMetadata("c", "g", "1"), authorizer)
    for text in ("%C2%B2", "9" * 5000, "x"):
        path = f"/schemas/ids/{text}?subject=s"
        assert (await ask(application, "GET", path, **{PRINCIPAL: ALICE})).status == 404
