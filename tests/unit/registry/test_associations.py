"""Associations of topics with subjects, through the API."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.registry.log.election import NotLeader
from tests.unit.registry.memory_log import MemoryLog, SteadyLeader
from tests.unit.registry.requests import TestRegistry, on_a_loop, record

OWNED = {"schema": {"schema": '"string"'}}


def topic(name: str, *associations: dict[str, Any], resource_id: str = "") -> dict[str, Any]:
    return {
        "resourceName": name,
        "resourceNamespace": "lkc1",
        "resourceId": resource_id or f"id-{name}",
        "associations": list(associations),
    }


def kind(association_type: str, **fields: Any) -> dict[str, Any]:
    return {"associationType": association_type, **fields}


@on_a_loop
async def test_a_strong_association_is_created_with_its_schema_and_owns_the_subject() -> None:
    registry = await TestRegistry().start()
    body = topic("orders", kind("key", schema={"schema": '"int"'}), kind("value", **OWNED))
    created = await registry.ask("POST", "/associations", body)
    assert created.status == 200
    reply = created.json
    key, value = reply.pop("associations")
    assert reply == {
        "resourceName": "orders",
        "resourceNamespace": "lkc1",
        "resourceId": "id-orders",
        "resourceType": "topic",
    }
    assert (key["subject"], key["lifecycle"], key["frozen"]) == (":.lkc1:orders-key", "STRONG", True)
    assert (key["schema"]["id"], value["schema"]["id"]) == (1, 2)
    assert (await registry.ask("GET", "/subjects/:.lkc1:orders-value/versions/1")).json["id"] == 2
    assert (await registry.ask("POST", "/associations", body)).json == reply

    other = topic("other", kind("value", subject=":.lkc1:orders-value", lifecycle="WEAK"))
    assert (await registry.ask("POST", "/associations", other)).json["error_code"] == 40905
    user = {"type": "record", "name": "u", "fields": []}
    reference = [{"name": "r", "subject": ":.lkc1:orders-value", "version": 1}]
    refused = await registry.register(":.lkc1:u", user, references=reference)
    assert refused.json["error_code"] == 42205
    assert (await registry.ask("DELETE", "/subjects/:.lkc1:orders-value")).json["error_code"] == 40904


@on_a_loop
async def test_equal_schemas_of_key_and_value_have_one_id() -> None:
    registry = await TestRegistry().start()
    created = await registry.ask(
        "POST", "/associations", topic("t", kind("key", **OWNED), kind("value", **OWNED))
    )
    assert [each["schema"]["id"] for each in created.json["associations"]] == [1, 1]
    assert (await registry.register(":.lkc1:x", '"int"')).json["id"] == 2


@on_a_loop
async def test_associations_are_found_by_subject_name_and_id_also_after_a_restart() -> None:
    registry = await TestRegistry().start()
    await registry.register("shared", record("r", "a"))
    for name in ("b", "a"):
        body = topic(name, kind("value", subject="shared", lifecycle="WEAK"))
        assert (await registry.ask("POST", "/associations", body)).status == 200
    again = await TestRegistry(registry.log).start()
    for each in (registry, again):
        by_subject = (await each.ask("GET", "/associations/subjects/shared")).json
        assert [association["resourceName"] for association in by_subject] == ["a", "b"]
        assert by_subject[0]["lifecycle"] == "WEAK" and by_subject[0]["frozen"] is False
        assert by_subject[0]["createTs"] == by_subject[0]["updateTs"] > 0
        assert (await each.ask("GET", "/associations/resources/lkc1/a")).json == by_subject[:1]
        assert (await each.ask("GET", "/associations/resources/-/-")).json == by_subject
        assert (await each.ask("GET", "/associations/resources/id-b")).json == by_subject[1:]
        for path in ("lifecycle=STRONG", "associationType=key", "resourceType=x", "offset=2"):
            assert (await each.ask("GET", f"/associations/subjects/shared?{path}")).json == []
        listed = (await each.ask("GET", "/schemas?associationType=value")).json
        assert len(listed[0]["associations"]) == 2


@on_a_loop
async def test_updates() -> None:
    registry = await TestRegistry().start()
    await registry.register("s", '"string"')
    await registry.register("t", '"string"')
    path = "/associations/resources/id-a"
    weak = topic("a", kind("value", subject="s"))
    assert (await registry.ask("PUT", path, weak)).json["associations"][0]["lifecycle"] == "WEAK"
    assert "associations" not in (await registry.ask("PUT", path, weak)).json
    cases = [
        (
            topic("a", kind("value", subject="t", lifecycle="WEAK")),
            "subject of association cannot be changed",
        ),
        (topic("a", kind("value", lifecycle="STRONG")), "cannot be frozen=false"),
        (topic("a", kind("key", lifecycle="STRONG")), "must be created with the topic"),
        (topic("a", kind("key", **OWNED)), "an association with a schema must be created with the topic"),
        (topic("a", kind("value", subject="s"), resource_id="else"), "does not match"),
    ]
    for body, message in cases:
        refused = await registry.ask("PUT", path, body)
        assert (refused.status, refused.json["error_code"]) == (422, 42212)
        assert message in refused.json["message"]
    exists = await registry.ask(
        "POST", "/associations", topic("a", kind("value", subject="t", lifecycle="WEAK"))
    )
    assert (exists.status, exists.json["error_code"]) == (409, 40903)


@on_a_loop
async def test_invalid_requests() -> None:
    registry = await TestRegistry().start()
    await registry.register("s", '"string"')
    cases = [
        ({}, "resourceName"),
        (topic("a b"), "illegal character ' '"),
        (topic("a"), "associations"),
        ({**topic("a", kind("value", subject="s")), "resourceId": ""}, "resourceId"),
        ({**topic("a", kind("value", subject="s")), "resourceType": "queue"}, "must be 'topic'"),
        (topic("a", kind("other", subject="s")), "must be either 'key' or 'value'"),
        (topic("a", kind("value", lifecycle="WEAK")), "must be provided for WEAK"),
        (topic("a", kind("value", lifecycle="STRONG")), "schema must be provided"),
        (topic("a", kind("value", lifecycle="WEAK", **OWNED)), "cannot be WEAK when schema"),
        (topic("a", kind("value", frozen=False, **OWNED)), "cannot be false when a schema"),
        (topic("a", kind("value", subject="s", **OWNED)), "frozen associations must use subject"),
        (topic("a", kind("value", subject="s"), kind("value", subject="s")), "may only appear once"),
        (topic("a", kind("key", subject="s"), kind("value", **OWNED)), "must have the same lifecycle"),
    ]
    for body, message in cases:
        refused = await registry.ask("POST", "/associations", body)
        assert (refused.status, refused.json["error_code"]) == (422, 42212), body
        assert message in refused.json["message"], refused.json
    missing = await registry.ask("POST", "/associations", topic("a", kind("value", subject="none")))
    assert (missing.status, missing.json["error_code"]) == (409, 40907)
    assert registry.log.records[1:] == []


@on_a_loop
async def test_deletes() -> None:
    registry = await TestRegistry().start()
    await registry.ask("POST", "/associations", topic("a", kind("value", **OWNED)))
    path = "/associations/resources/id-a"
    frozen = await registry.ask("DELETE", path)
    assert (frozen.status, frozen.json["error_code"]) == (409, 40908)
    assert (await registry.ask("DELETE", f"{path}?cascadeLifecycle=true&dryRun=true")).status == 204
    assert (await registry.ask("GET", path)).json != []
    assert (await registry.ask("DELETE", f"{path}?cascadeLifecycle=true")).status == 204
    assert (await registry.ask("GET", path)).json == []
    assert (await registry.ask("GET", "/subjects?deleted=true")).json == []
    assert (await registry.ask("DELETE", path)).json["error_code"] == 40410
    assert (await TestRegistry(registry.log).start()).service.registry.store.subjects == {}


@on_a_loop
async def test_a_dry_run_writes_nothing() -> None:
    registry = await TestRegistry().start()
    body = topic("a", kind("value", **OWNED))
    del body["resourceId"]
    answer = await registry.ask("POST", "/associations?dryRun=true", body)
    assert answer.json == {"resourceName": "a", "resourceNamespace": "lkc1", "resourceType": "topic"}
    assert registry.log.records == []


@on_a_loop
async def test_batches() -> None:
    registry = await TestRegistry().start()
    mutated = await registry.ask(
        "POST",
        "/associations:batchMutate",
        {
            "requests": [
                topic("a", kind("key", opType="CREATE", **OWNED), kind("value", opType="CREATE", **OWNED)),
                topic("b", kind("value", opType="CREATE", subject="none")),
                topic("a", kind("key", opType="DELETE", cascadeLifecycle=True)),
                topic("c", kind("value", opType="REPLACE")),
            ]
        },
    )
    assert mutated.status == 207
    created, missing, deleted, unknown = mutated.json["results"]
    assert len(created["result"]["associations"]) == 2
    assert missing["error"]["error_code"] == 40907
    assert [each["associationType"] for each in deleted["result"]["associations"]] == ["value"]
    assert unknown["error"]["error_code"] == 42212
    queries = [{"resourceId": "id-a"}, {"resourceName": "a", "resourceNamespace": "lkc1"}, {}]
    found = await registry.ask("POST", "/associations:batchGet?includeSchemas=true", {"requests": queries})
    assert found.status == 207
    by_id, by_name, neither = found.json["results"]
    assert by_id == by_name
    assert by_id["result"]["associations"][0]["schema"]["schema"] == '"string"'
    assert neither["error"]["error_code"] == 42212
    assert (await registry.ask("POST", "/associations:batchGet", {})).json["error_code"] == 42212


class LeaderFor(SteadyLeader):
    """Leads until the log has this many batches."""

    def __init__(self, log: MemoryLog, batches: int) -> None:
        super().__init__()
        self._log = log
        self._batches = batches

    async def require(self, timeout_s: float) -> None:
        raise NotLeader(None)

    @property
    def leads(self) -> bool:
        return self._log.batches < self._batches

    @leads.setter
    def leads(self, value: bool) -> None:
        """The log decides."""


def creations(*names: str) -> dict[str, Any]:
    created = kind("value", subject="s", lifecycle="WEAK", opType="CREATE")
    return {"requests": [topic(name, created) for name in names]}


@on_a_loop
async def test_a_batch_is_not_forwarded_after_a_part_of_it_was_written() -> None:
    log = MemoryLog()
    registry = await TestRegistry(log, LeaderFor(log, 3)).start()
    await registry.register("s", '"string"')
    answer = await registry.ask("POST", "/associations:batchMutate", creations("a", "b", "c"))
    assert answer.status == 207
    first, second, third = answer.json["results"]
    assert [first["result"]["resourceId"], second["result"]["resourceId"]] == ["id-a", "id-b"]
    assert third["error"]["error_code"] == 50004
    assert len(registry.service.registry.store.associations) == 2


@on_a_loop
async def test_a_batch_of_which_nothing_was_written_is_forwarded() -> None:
    log = MemoryLog()
    registry = await TestRegistry(log, LeaderFor(log, 1)).start()
    await registry.register("s", '"string"')
    with pytest.raises(NotLeader):
        await registry.ask("POST", "/associations:batchMutate", creations("a"))
    assert registry.service.registry.store.associations == {}
