"""Query parameters and body fields of the endpoints that the recorded exchanges do not show."""

from __future__ import annotations

import json
from typing import Any

from moldau.registry.settings import registry_settings
from tests.unit.registry.requests import TestRegistry, on_a_loop, record

RULES = {
    "domainRules": [{"name": "check", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}]
}


async def get(registry: TestRegistry, path: str) -> Any:
    answer = await registry.ask("GET", path)
    assert answer.status == 200, answer.body
    return answer.json


@on_a_loop
async def test_contexts_have_their_own_ids_and_every_path_exists_below_them() -> None:
    registry = await TestRegistry().start()
    await registry.register("s", record("r", "a"))
    below = "/contexts/.ctx"
    posted = await registry.ask("POST", f"{below}/subjects/s/versions", {"schema": '"string"'})
    assert posted.json["id"] == 1
    assert await get(registry, "/contexts") == [".", ".ctx"]
    assert await get(registry, "/contexts?contextPrefix=.c&offset=0&limit=1") == [".ctx"]
    assert await get(registry, f"{below}/subjects") == [":.ctx:s"]
    assert await get(registry, "/subjects?subjectPrefix=:.ctx:") == [":.ctx:s"]
    assert await get(registry, "/subjects?subjectPrefix=:*:s") == [":.ctx:s", "s"]
    assert (await get(registry, f"{below}/schemas/ids/1"))["schema"] == '"string"'
    assert (await get(registry, "/schemas/ids/1?subject=:.ctx:"))["schema"] == '"string"'
    assert await get(registry, f"{below}/schemas/ids/1/versions") == [{"subject": ":.ctx:s", "version": 1}]
    assert (await get(registry, f"{below}/subjects/s/versions/latest"))["subject"] == ":.ctx:s"
    look_up = await registry.ask("POST", f"{below}/subjects/s", {"schema": '"string"'})
    assert look_up.json["version"] == 1
    await registry.ask("PUT", f"{below}/config", {"compatibility": "FULL"})
    assert (await get(registry, f"{below}/config"))["compatibilityLevel"] == "FULL"
    assert (await get(registry, "/config/:.ctx:other?defaultToGlobal=true"))["compatibilityLevel"] == "FULL"
    assert (await get(registry, "/config"))["compatibilityLevel"] == "NONE"
    await registry.ask("PUT", f"{below}/mode", {"mode": "READONLY"})
    refused = await registry.ask("POST", f"{below}/subjects/s/versions", {"schema": '"int"'})
    assert refused.json["error_code"] == 42205
    assert (await registry.register("s", '"int"')).status == 200
    full = await registry.ask("DELETE", below)
    assert (full.status, full.json["error_code"]) == (422, 42211)


@on_a_loop
async def test_an_empty_context_can_be_deleted() -> None:
    registry = await TestRegistry().start()
    await registry.register(":.ctx:s", '"string"')
    await registry.ask("DELETE", "/subjects/:.ctx:s")
    assert (await registry.ask("DELETE", "/contexts/.ctx")).status == 422
    await registry.ask("DELETE", "/subjects/:.ctx:s?permanent=true")
    assert (await registry.ask("DELETE", "/contexts/.ctx")).status == 204
    assert await get(registry, "/contexts") == ["."]


@on_a_loop
async def test_guids_and_the_highest_id() -> None:
    registry = await TestRegistry().start()
    guid = (await registry.register("s", '"string"')).json["guid"]
    await registry.register(":.ctx:s", '"string"')
    await registry.register("t", '"int"')
    assert (await get(registry, f"/schemas/guids/{guid}"))["schema"] == '"string"'
    assert await get(registry, f"/schemas/guids/{guid}/ids") == [
        {"context": ".", "id": 1},
        {"context": ".ctx", "id": 1},
    ]
    assert (await registry.ask("GET", "/schemas/guids/none")).json["error_code"] == 40403
    assert (await get(registry, "/schemas/ids/1?fetchMaxId=true"))["maxId"] == 2


@on_a_loop
async def test_lists_of_schemas_have_filters_and_pages() -> None:
    registry = await TestRegistry().start()
    await registry.register("a", '"string"', ruleSet=RULES)
    await registry.register("b", '"int"')
    await registry.register("b", '"long"')
    await registry.ask("DELETE", "/subjects/b/versions/1")

    async def listed(query: str) -> list[tuple[str, int]]:
        return [(each["subject"], each["version"]) for each in await get(registry, f"/schemas?{query}")]

    assert await listed("") == [("a", 1), ("b", 2)]
    assert await listed("deleted=true") == [("a", 1), ("b", 1), ("b", 2)]
    assert await listed("deleted=true&latestOnly=true") == [("a", 1), ("b", 2)]
    assert await listed("ruleType=CEL") == [("a", 1)]
    assert await listed("subjectPrefix=b") == [("b", 2)]
    assert await listed("offset=1&limit=1") == [("b", 2)]
    await registry.ask("PUT", "/config/c", {"alias": "b"})
    aliased = await get(registry, "/schemas?aliases=true&subjectPrefix=c")
    assert [(each["subject"], each["aliases"]) for each in aliased] == [("b", ["c"])]


@on_a_loop
async def test_lists_of_subjects_and_versions_show_deleted_ones_on_request() -> None:
    registry = await TestRegistry().start()
    for name in ("a", "b"):
        await registry.register(name, '"string"')
        await registry.register(name, '"int"')
    await registry.ask("DELETE", "/subjects/a")
    await registry.ask("DELETE", "/subjects/b/versions/1")
    assert await get(registry, "/subjects") == ["b"]
    assert await get(registry, "/subjects?deleted=true") == ["a", "b"]
    assert await get(registry, "/subjects?deletedOnly=true") == ["a"]
    assert await get(registry, "/subjects?deleted=true&offset=1") == ["b"]
    assert await get(registry, "/subjects/b/versions") == [2]
    assert await get(registry, "/subjects/b/versions?deleted=true") == [1, 2]
    assert await get(registry, "/subjects/b/versions?deletedOnly=true") == [1]
    assert await get(registry, "/subjects/b/versions?deletedAsNegative=true") == [-1, 2]
    assert await get(registry, "/subjects/b/versions/1/schema?deleted=true") == "string"
    assert await get(registry, "/schemas/ids/1/subjects") == []
    assert await get(registry, "/schemas/ids/1/subjects?deleted=true") == ["a", "b"]


@on_a_loop
async def test_references_are_shown_qualified_and_resolved() -> None:
    registry = await TestRegistry().start()
    await registry.register(":.c:base", record("Base", "a"))
    user = {"type": "record", "name": "User", "fields": [{"name": "b", "type": "Base"}]}
    references = [{"name": "Base", "subject": "base", "version": -1}]
    assert (await registry.register(":.c:user", user, references=references)).status == 200
    path = "/subjects/:.c:user/versions/1"
    assert (await get(registry, path))["references"][0] == {"name": "Base", "subject": "base", "version": 1}
    shown = (await get(registry, f"{path}?referenceFormat=qualified"))["references"]
    assert shown[0]["subject"] == ":.c:base"
    assert '"name":"a"' in (await get(registry, f"{path}?format=resolved"))["schema"]
    assert await get(registry, "/subjects/:.c:base/versions/1/referencedby") == [2]


@on_a_loop
async def test_metadata_selects_the_latest_version_with_it() -> None:
    registry = await TestRegistry().start()
    for number, owner in enumerate(("ann", "bob", "ann")):
        metadata = {"properties": {"owner": owner, "n": str(number)}, "sensitive": ["n"]}
        await registry.register("s", record("r", f"f{number}"), metadata=metadata)
    found = await get(registry, "/subjects/s/metadata?key=owner&value=ann")
    assert (found["version"], found["metadata"]["properties"]["n"]) == (3, "2")
    assert (await get(registry, "/subjects/s/metadata?key=owner&value=ann&key=n&value=0"))["version"] == 1
    assert (await registry.ask("GET", "/subjects/s/metadata?key=owner&value=eve")).json["error_code"] == 40403


@on_a_loop
async def test_defaults_and_overrides_of_the_config_are_part_of_new_schemas() -> None:
    registry = await TestRegistry().start()
    config = {
        "defaultMetadata": {"properties": {"owner": "nobody", "team": "x"}},
        "overrideMetadata": {"properties": {"checked": "yes"}},
        "defaultRuleSet": RULES,
        "compatibilityPolicy": "LENIENT",
        "validateRules": False,
    }
    put = await registry.ask("PUT", "/config/s", config)
    assert put.json["defaultMetadata"] == config["defaultMetadata"]
    await registry.register("s", '"string"', metadata={"properties": {"owner": "ann"}})
    stored = await get(registry, "/subjects/s/versions/1")
    assert stored["metadata"]["properties"] == {"checked": "yes", "owner": "ann", "team": "x"}
    assert stored["ruleSet"]["domainRules"][0]["name"] == "check"
    shown = await get(registry, "/config/s")
    assert (shown["compatibilityPolicy"], shown["validateRules"]) == ("LENIENT", False)
    assert (await registry.ask("PUT", "/config/s", {"compatibilityPolicy": "WEIRD"})).json[
        "error_code"
    ] == 42203
    removed = await registry.ask("PUT", "/config/s", {"defaultMetadata": None})
    assert "defaultMetadata" not in removed.json
    assert (await registry.ask("DELETE", "/config/s")).status == 200
    assert (await registry.ask("GET", "/config/s")).json["error_code"] == 40408


@on_a_loop
async def test_modes() -> None:
    registry = await TestRegistry().start()
    await registry.register("s", '"string"')
    for mode in ("READONLY", "READONLY_OVERRIDE"):
        assert (await registry.ask("PUT", "/mode", {"mode": mode})).json == {"mode": mode}
        assert (await registry.register("s", '"int"')).json["error_code"] == 42205
        assert (await registry.register("s", '"string"')).json["id"] == 1
        assert (await registry.ask("DELETE", "/subjects/s")).json["error_code"] == 42205
    await registry.ask("PUT", "/mode/s", {"mode": "READWRITE"})
    assert (await registry.register("s", '"int"')).status == 200
    assert (await registry.ask("GET", "/mode/t")).json["error_code"] == 40409
    assert await get(registry, "/mode/t?defaultToGlobal=true") == {"mode": "READONLY_OVERRIDE"}
    assert (await registry.ask("DELETE", "/mode?recursive=true")).json == {"mode": "READONLY_OVERRIDE"}
    assert await get(registry, "/mode") == {"mode": "READWRITE"}
    assert (await registry.ask("GET", "/mode/s")).json["error_code"] == 40409
    assert (await registry.ask("PUT", "/mode", {"mode": "IMPORT"})).json["error_code"] == 42205
    assert (await registry.ask("PUT", "/mode?force=true", {"mode": "IMPORT"})).status == 200
    imported = await registry.register("i", '"long"', id=77, version=5)
    assert (imported.json["id"], imported.json["version"]) == (77, 5)
    for scope in ("", "/s"):
        assert (await registry.ask("PUT", f"/mode{scope}", {"mode": "FORWARD"})).json["error_code"] == 42204
    assert (await registry.ask("PUT", "/mode/:.__GLOBAL:", {"mode": "FORWARD"})).status == 200
    assert (await registry.ask("PUT", "/mode", {"mode": "SLEEP"})).json["error_code"] == 42204


@on_a_loop
async def test_modes_cannot_be_changed_without_mutability() -> None:
    registry = await TestRegistry(mode_mutability=False).start()
    for method in ("PUT", "DELETE"):
        refused = await registry.ask(method, "/mode", {"mode": "READONLY"})
        assert (refused.json["error_code"], refused.json["message"]) == (
            42205,
            "Mode changes are not allowed",
        )


@on_a_loop
async def test_a_lenient_policy_lets_optional_fields_be_added_to_json_schemas() -> None:
    registry = await TestRegistry(compatibility_level="BACKWARD").start()
    old = {"type": "object", "properties": {"a": {"type": "string"}}}
    new = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    await registry.register("s", old, schemaType="JSON")
    assert (await registry.register("s", new, schemaType="JSON")).status == 409
    assert (await registry.register("s", new, schemaType="JSON", force=True)).status == 409
    await registry.ask("PUT", "/config/s", {"compatibilityPolicy": "LENIENT"})
    assert (await registry.register("s", new, schemaType="JSON")).status == 200
    incompatible = {"schema": '{"type":"string"}', "schemaType": "JSON"}
    path = "/subjects/s/versions?force=true"
    assert (await registry.ask("POST", path, incompatible)).status == 200


@on_a_loop
async def test_checks_of_compatibility_explain_themselves() -> None:
    registry = await TestRegistry(compatibility_level="BACKWARD").start()
    await registry.register("s", record("r", "a"))
    path, body = "/compatibility/subjects/s/versions", {"schema": '"string"'}
    assert (await registry.ask("POST", path, body)).json == {"is_compatible": False}
    for suffix in ("", "/latest", "/1"):
        verbose = (await registry.ask("POST", f"{path}{suffix}?verbose=true", body)).json
        assert verbose["is_compatible"] is False and "TYPE_MISMATCH" in verbose["messages"][0]
    assert (await registry.ask("POST", f"{path}/7", body)).json["error_code"] == 40402
    unknown = await registry.ask("POST", "/compatibility/subjects/none/versions", body)
    assert unknown.json == {"is_compatible": True}


@on_a_loop
async def test_tags_are_added_found_and_propagated() -> None:
    registry = await TestRegistry().start()
    await registry.register("s", record("r", "a"))
    entity = {"entityPath": "r.a", "entityType": "sr_field"}
    body = {"tagsToAdd": [{"schemaEntity": entity, "tags": ["PII"]}]}
    assert (await registry.ask("POST", "/subjects/s/versions/1/tags", body)).json["version"] == 2
    for path in ("/subjects/s/versions/2", "/schemas/ids/2"):
        found = (await get(registry, f"{path}?findTags=PII"))["schemaTags"]
        assert found == [{"schemaEntity": entity, "tags": ["PII"]}]
        assert "schemaTags" not in await get(registry, f"{path}?findTags=OTHER")
    await registry.register("s", record("r", "a", b="x"), propagateSchemaTags=True)
    assert "confluent:tags" in (await get(registry, "/subjects/s/versions/3"))["schema"]


@on_a_loop
async def test_metadata_of_the_server() -> None:
    registry = await TestRegistry().start()
    clusters = {"kafka-cluster": "cluster", "schema-registry-cluster": "group"}
    assert await get(registry, "/v1/metadata/id") == {"scope": {"path": [], "clusters": clusters}}
    assert (await get(registry, "/v1/metadata/version"))["version"] == "1.0"
    assert await get(registry, "/v1/metadata/deployment") == {"attributes": []}
    assert await get(registry, "/") == {}
    assert await get(registry, "/schemas/types") == ["JSON", "PROTOBUF", "AVRO"]


@on_a_loop
async def test_a_reference_that_stands_for_another_schema_is_compared_again() -> None:
    registry = await TestRegistry(compatibility_level="BACKWARD").start()
    order = {"type": "record", "name": "Order", "fields": [{"name": "item", "type": "Item"}]}

    async def is_compatible(subject: str) -> Any:
        body = {"schema": json.dumps(order), "references": references(subject)}
        answer = await registry.ask("POST", "/compatibility/subjects/orders/versions/latest", body)
        return answer.json["is_compatible"]

    for subject in ("old", "new"):
        await registry.register(subject, record("Item", "name"))
    await registry.register("orders", order, references=references("old"))
    assert await is_compatible("new")
    await registry.ask("DELETE", "/subjects/new")
    await registry.ask("DELETE", "/subjects/new?permanent=true")
    await registry.register("new", record("Item", "name", "price"))
    assert not await is_compatible("new")
    refused = await registry.register("orders", order, references=references("new"))
    assert (refused.status, refused.json["error_code"]) == (409, 40901)


def references(subject: str) -> list[dict[str, Any]]:
    return [{"name": "Item", "subject": subject, "version": 1}]


@on_a_loop
async def test_booleans_are_converted_as_jackson_does() -> None:
    registry = await TestRegistry().start()
    given = {"false": False, "False": False, "": False, "null": False, " true ": True, "TRUE": True}
    for number, (value, expected) in enumerate([*given.items(), (0, False), (7, True), (None, False)]):
        rules = {"domainRules": [{**RULES["domainRules"][0], "disabled": value}]}
        await registry.register(f"s{number}", '"string"', ruleSet=rules)
        [rule] = (await get(registry, f"/subjects/s{number}/versions/1"))["ruleSet"]["domainRules"]
        assert (value, rule["disabled"]) == (value, expected)
    for wrong in ("yes", "fALSE", 0.0, [True], {}):
        rules = {"domainRules": [{**RULES["domainRules"][0], "disabled": wrong}]}
        refused = await registry.register("t", '"string"', ruleSet=rules)
        assert (refused.status, refused.json["message"]) == (422, "disabled must be true or false.")


@on_a_loop
async def test_false_as_a_text_is_false_in_every_request() -> None:
    registry = await TestRegistry().start()
    await registry.register("s", record("r", "a"))
    entity = {"entityPath": "r.a", "entityType": "sr_field"}
    tags = {"tagsToAdd": [{"schemaEntity": entity, "tags": ["PII"]}]}
    await registry.ask("POST", "/subjects/s/versions/1/tags", tags)
    await registry.register("s", record("r", "a", b="x"), propagateSchemaTags="false")
    assert "confluent:tags" not in (await get(registry, "/subjects/s/versions/3"))["schema"]
    answer = await registry.ask("PUT", "/config/s", {"normalize": "false"})
    assert answer.json == {"normalize": False}
    unsorted = {"type": "string", "b": 1, "a": 2}
    named = {"resourceName": "t", "resourceNamespace": "n", "resourceId": "id-t"}
    value = {"associationType": "value", "normalize": "false", "schema": {"schema": json.dumps(unsorted)}}
    created = await registry.ask("POST", "/associations", {**named, "associations": [value]})
    assert list(json.loads(created.json["associations"][0]["schema"]["schema"])) == ["type", "b", "a"]
    remove = {"associationType": "value", "opType": "DELETE", "cascadeLifecycle": "false"}
    body = {"requests": [{**named, "associations": [remove]}]}
    [result] = (await registry.ask("POST", "/associations:batchMutate", body)).json["results"]
    assert result["error"]["error_code"] == 40908
    assert await get(registry, "/subjects/:.n:t-value/versions") == [1]


@on_a_loop
async def test_lists_have_a_default_and_a_largest_limit() -> None:
    limits = {"schema": (2, 3), "subject": (1, 4)}
    names = {
        f"{kind}.search.{name}.limit": str(value)
        for kind, values in limits.items()
        for name, value in zip(("default", "max"), values, strict=True)
    }
    settings = registry_settings(names)
    registry = await TestRegistry(
        search_limit=settings.search_limit, subject_search_limit=settings.subject_search_limit
    ).start()
    for number in range(5):
        await registry.register(f"s{number}", '"string"')
    for path, (default, most) in {"/schemas": limits["schema"], "/subjects": limits["subject"]}.items():
        sizes = [len(await get(registry, f"{path}?limit={limit}")) for limit in (-1, 0, 1, most, most + 1)]
        assert sizes == [default, default, 1, most, default]
