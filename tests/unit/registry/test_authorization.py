"""ACLs of the registry: literal and prefixed subjects, deny before allow, nothing without a rule."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
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
from tests.harness.registry.application import Answer, ask
from tests.unit.registry.requests import TestRegistry, on_a_loop, record

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


#: The example of docs/REGISTRY.md.
EXAMPLE = (
    "allow User:alice SUBJECT_READ,SUBJECT_WRITE orders-*; allow User:* SUBJECT_READ,GLOBAL_READ *; "
    "deny User:bob * :.secret:*"
)


async def _asker(rules: str, registry: TestRegistry) -> Callable[..., Awaitable[Answer]]:
    """Return a function that sends requests as a principal."""
    authorizer = Authorizer.from_properties({"schema.registry.acl.rules": rules})
    application = RegistryApplication(registry.service, ServerMetadata("cluster", "group", "1.0"), authorizer)

    async def send(principal: KafkaPrincipal, method: str, path: str, body: object = None) -> Answer:
        return await ask(application, method, path, body, **{PRINCIPAL: principal})

    return send


async def _with_secrets() -> TestRegistry:
    """Return a registry with a schema that only `.secret` has, and one that `orders` has, too."""
    registry = await TestRegistry().start()
    await registry.register("orders", '"string"')
    for schema in ('"string"', '"long"'):
        await registry.register(":.secret:orders", schema)
    return registry


@on_a_loop
async def test_lists_contain_only_subjects_that_may_be_read() -> None:
    registry = await _with_secrets()
    await registry.ask("PUT", "/config/:.secret:old", {"alias": "orders"})
    send = await _asker(EXAMPLE, registry)
    paths = {
        "/subjects": (["orders"], [":.secret:orders", "orders"]),
        "/subjects?subjectPrefix=:.secret:": ([], [":.secret:orders"]),
        "/contexts/.secret/subjects": ([], [":.secret:orders"]),
        "/schemas?subjectPrefix=:*:&latestOnly=true": (["orders"], [":.secret:orders", "orders"]),
        "/contexts/.secret/schemas?latestOnly=true": ([], [":.secret:orders"]),
        "/schemas/ids/1/subjects": (["orders"], ["orders"]),
        "/contexts": (["."], [".", ".secret"]),
    }
    for path, (bobs, alices) in paths.items():
        for principal, expected in ((BOB, bobs), (ALICE, alices)):
            found = (await send(principal, "GET", path)).json
            names = [each["subject"] if isinstance(each, dict) else each for each in found]
            assert (path, principal.name, names) == (path, principal.name, expected)
    assert (await send(BOB, "GET", "/schemas/ids/1/versions")).json == [{"subject": "orders", "version": 1}]
    assert "aliases" not in (await send(BOB, "GET", "/schemas?subjectPrefix=:*:&aliases=true")).json[0]


@on_a_loop
async def test_a_denied_subject_is_not_readable_by_id_or_guid() -> None:
    registry = await _with_secrets()
    send = await _asker(EXAMPLE, registry)
    secret = (await registry.ask("GET", "/subjects/:.secret:orders/versions/2")).json["guid"]
    shared = (await registry.ask("GET", "/subjects/orders/versions/1")).json["guid"]
    denied = [
        "/schemas/ids/1?subject=:.secret:orders",
        "/schemas/ids/1/schema?subject=:.secret:orders",
        "/schemas/ids/1/subjects?subject=:.secret:orders",
        "/schemas/ids/1/versions?subject=:.secret:orders",
        "/schemas/ids/1?subject=:.secret:",
        "/schemas/ids/2?subject=orders",
        "/contexts/.secret/schemas/ids/2",
        "/contexts/.secret/schemas/ids/2/schema",
        f"/schemas/guids/{secret}",
        f"/schemas/guids/{secret}/ids",
    ]
    for path in denied:
        refused = await send(BOB, "GET", path)
        assert (path, refused.status, refused.json.get("error_code")) == (path, 403, 40301)
        assert "secret" not in refused.json["message"]
        assert (path, (await send(ALICE, "GET", path)).status) == (path, 200)
    assert (await send(BOB, "GET", "/schemas/ids/1")).json["subject"] == "orders"
    assert (await send(BOB, "GET", f"/schemas/guids/{shared}")).json["schema"] == '"string"'
    assert (await send(BOB, "GET", f"/schemas/guids/{shared}/ids")).json == [{"context": ".", "id": 1}]
    assert (await send(ALICE, "GET", f"/schemas/guids/{shared}/ids")).json[1:] == [
        {"context": ".secret", "id": 1}
    ]


@on_a_loop
async def test_global_read_without_a_rule_for_the_subject_reads_ids_but_lists_nothing() -> None:
    send = await _asker("allow User:alice GLOBAL_READ *", await _with_secrets())
    assert (await send(ALICE, "GET", "/schemas/ids/1")).status == 200
    assert (await send(ALICE, "GET", "/subjects")).json == []
    assert (await send(ALICE, "GET", "/schemas/ids/1/subjects")).json == []


@on_a_loop
async def test_a_schema_cannot_refer_to_a_denied_subject() -> None:
    registry = await _with_secrets()
    await registry.register(":.secret:item", record("Item", "price"))
    send = await _asker(f"{EXAMPLE}; allow User:bob SUBJECT_WRITE *", registry)
    reference = [{"name": "Item", "subject": ":.secret:item", "version": 1}]
    body = {"schema": json.dumps({"type": "array", "items": "Item"}), "references": reference}
    for path in ("/subjects/mine/versions", "/subjects/mine", "/compatibility/subjects/mine/versions"):
        refused = await send(BOB, "POST", path, body)
        assert (path, refused.status, refused.json["error_code"]) == (path, 403, 40301)
    assert (await registry.ask("POST", "/subjects/mine/versions", body)).status == 200


@on_a_loop
async def test_associations_with_denied_subjects_are_not_shown() -> None:
    registry = await _with_secrets()
    associations = [
        {"associationType": "key", "subject": "orders", "lifecycle": "WEAK"},
        {"associationType": "value", "subject": ":.secret:orders", "lifecycle": "WEAK"},
    ]
    named = {"resourceName": "t", "resourceNamespace": "n", "resourceId": "id-t"}
    created = await registry.ask("POST", "/associations", {**named, "associations": associations})
    assert created.status == 200
    send = await _asker(EXAMPLE, registry)
    for principal, expected in ((BOB, ["orders"]), (ALICE, ["orders", ":.secret:orders"])):
        for path in ("/associations/resources/n/t", "/associations/resources/id-t"):
            found = (await send(principal, "GET", path)).json
            assert [each["subject"] for each in found] == expected
        batch = {"requests": [{"resourceId": "id-t"}]}
        answer = await send(principal, "POST", "/associations:batchGet?includeSchemas=true", batch)
        [result] = answer.json["results"]
        assert [each["subject"] for each in result["result"]["associations"]] == expected
    assert (await send(BOB, "GET", "/associations/subjects/:.secret:orders")).status == 403


@on_a_loop
async def test_changes_of_associations_need_permissions_for_their_subjects() -> None:
    registry = await _with_secrets()
    named = {"resourceName": "t", "resourceNamespace": "secret", "resourceId": "id-t"}
    owned = {**named, "associations": [{"associationType": "value", "schema": {"schema": '"int"'}}]}
    weak = {"associationType": "key", "subject": ":.secret:orders", "lifecycle": "WEAK"}
    shared = {"resourceName": "s", "resourceNamespace": "n", "resourceId": "id-s", "associations": [weak]}
    assert (await registry.ask("POST", "/associations", owned)).status == 200
    records = list(registry.log.records)
    update = {**named, "associations": [{"associationType": "value", "lifecycle": "WEAK"}]}
    remove = {"associationType": "value", "opType": "DELETE", "cascadeLifecycle": True}
    create = {**weak, "opType": "CREATE"}
    cascade = "/associations/resources/id-t?cascadeLifecycle=true"

    async def statuses(*rules: str) -> list[int]:
        """Return how Alice's requests are answered; those of a batch as their error codes."""
        send = await _asker("; ".join((*rules, "allow User:alice GLOBAL_COMPATIBILITY_WRITE *")), registry)
        single = [
            (await send(ALICE, *request)).status
            for request in (
                ("POST", "/associations?dryRun=true", owned),
                ("POST", "/associations", {**owned, "resourceName": "u", "resourceId": "id-u"}),
                ("POST", "/associations", shared),
                ("PUT", "/associations/resources/id-t", update),
                ("DELETE", cascade, None),
            )
        ]
        batch = {"requests": [{**shared, "associations": [create]}, {**named, "associations": [remove]}]}
        answer = await send(ALICE, "POST", "/associations:batchMutate", batch)
        results = [each.get("error", {}).get("error_code", 200) for each in answer.json["results"]]
        return single + results

    assert await statuses() == [403] * 5 + [40301] * 2
    assert await statuses("allow User:alice SUBJECT_WRITE n*") == [403] * 5 + [40301] * 2
    assert registry.log.records == records
    write = "allow User:alice SUBJECT_WRITE :.secret:*"
    assert await statuses(write) == [200, 200, 200, 422, 403, 200, 40301]
    assert (await registry.ask("GET", "/subjects/:.secret:t-value/versions")).json == [1]
    delete = "allow User:alice SUBJECT_DELETE :.secret:t-value"
    assert await statuses(write, delete) == [200, 200, 200, 422, 204, 200, 40410]
    assert (await registry.ask("GET", "/subjects/:.secret:t-value/versions?deleted=true")).status == 404


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
