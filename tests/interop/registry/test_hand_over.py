"""A topic handed over between Karapace and our registry, in both directions; and one group of both."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.testing import Cluster
from tests.harness.registry.instances import Instance, describe_group, instances
from tests.harness.waiting import eventually
from tests.interop.registry.karapace import COMMAND, karapace

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(not COMMAND, reason="MOLDAU_KARAPACE is not set: the command that starts Karapace"),
]

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}'
PRICED = (
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"},'
    '{"name":"price","type":"int","default":0}]}'
)
PERSON = '{"type":"object","properties":{"name":{"type":"string"}}}'
MONEY = 'syntax = "proto3";\npackage shop;\n\nmessage Money {\n  int64 cents = 1;\n}\n'
PAYMENT = (
    'syntax = "proto3";\npackage shop;\n\nimport "money.proto";\n\n'
    "message Payment {\n  .shop.Money amount = 1;\n}\n"
)
CUSTOMER = '{"type":"record","name":"Customer","namespace":"shop","fields":[{"name":"name","type":"string"}]}'
INVOICE = (
    '{"type":"record","name":"Invoice","namespace":"shop","fields":[{"name":"to","type":"shop.Customer"}]}'
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


def fill(registry: Instance) -> None:
    """Write every kind of record that both registries have."""
    assert registry.register("orders-value", ORDER).json["id"] == 1
    assert registry.register("orders-value", PRICED).json["id"] == 2
    assert registry.register("people-value", PERSON, schemaType="JSON").json["id"] == 3
    assert registry.register("copies-value", ORDER).json["id"] == 1
    assert registry.register("gone-value", '"long"').json["id"] == 4
    assert registry.register("removed-value", '"int"').json["id"] == 5
    assert registry.ask("PUT", "/config", {"compatibility": "FULL"}).status == 200
    assert registry.ask("PUT", "/config/orders-value", {"compatibility": "NONE"}).status == 200
    assert registry.ask("DELETE", "/subjects/orders-value/versions/1").json == 1
    assert registry.ask("DELETE", "/subjects/gone-value").json == [1]
    assert registry.ask("DELETE", "/subjects/removed-value").json == [1]
    assert registry.ask("DELETE", "/subjects/removed-value?permanent=true").json == [1]


def seen(registry: Instance) -> dict[str, Any]:
    """Return what both registries answer in the same way; Karapace sorts neither subjects nor fields.

    Karapace keeps the ids of schemas that were permanently deleted, so id 5 is not compared.
    """
    found: dict[str, Any] = {
        path: registry.ask("GET", path).json
        for path in (
            "/subjects/orders-value/versions",
            "/subjects/orders-value/versions?deleted=true",
            "/config",
            "/config/orders-value",
        )
    }
    for path in ("/subjects", "/subjects?deleted=true"):
        found[path] = sorted(registry.ask("GET", path).json)
    for schema_id in range(1, 5):
        found[f"id {schema_id}"] = json.loads(registry.ask("GET", f"/schemas/ids/{schema_id}").json["schema"])
    latest = registry.ask("GET", "/subjects/orders-value/versions/latest").json
    found["latest"] = (latest["id"], latest["version"], json.loads(latest["schema"]))
    return found


def settings(name: str) -> dict[str, str]:
    return {
        "kafkastore.topic": f"_schemas_{name}",
        "schema.registry.group.id": name,
        "schema.compatibility.level": "NONE",
        "kafkagroup.session.timeout.ms": "6000",
    }


def test_from_karapace_to_ours_and_back(cluster: Cluster) -> None:
    with karapace(cluster.bootstrap_servers, "_schemas_theirs", "theirs") as theirs:
        fill(theirs.wait_leading())
        before = seen(theirs)
    with instances(cluster.bootstrap_servers, 1, settings("theirs")) as [ours]:
        assert seen(ours) == before
        # Karapace was killed, and is a member of the group until its session expires.
        eventually(lambda: ours.register("orders-value", PRICED).status == 200, what="ours leads")
        assert ours.register("new-value", '"bytes"').json["id"] == 6
        assert ours.register("new-value", '"double"', references=[]).json["error_code"] == 40901
        assert ours.register("orders-value", PRICED).json["id"] == 2
        assert ours.ask("DELETE", "/subjects/copies-value").json == [1]
        before = seen(ours)
    with karapace(cluster.bootstrap_servers, "_schemas_theirs", "theirs") as theirs:
        theirs.wait_leading()
        assert seen(theirs) == before
        assert theirs.register("last-value", '"float"').json["id"] == 7


def test_from_ours_to_karapace(cluster: Cluster) -> None:
    with instances(cluster.bootstrap_servers, 1, settings("ours")) as [ours]:
        fill(ours)
        before = seen(ours)
    with karapace(cluster.bootstrap_servers, "_schemas_ours", "ours") as theirs:
        theirs.wait_leading()
        assert seen(theirs) == before
        assert theirs.register("new-value", '"bytes"').json["id"] == 6


def test_instances_of_both_have_one_leader(cluster: Cluster) -> None:
    with (
        instances(cluster.bootstrap_servers, 1, settings("mixed")) as [ours],
        karapace(cluster.bootstrap_servers, "_schemas_mixed", "mixed") as theirs,
    ):

        def leaders() -> frozenset[str]:
            described = asyncio.run(describe_group(cluster.bootstrap_servers, "mixed"))
            stable = described.members == 2 and described.state == "Stable"
            return described.leaders if stable else frozenset()

        assert len(eventually(leaders, timeout=30, what="both are members")) == 1
        assert ours.register("s", '"string"').json["id"] == 1
        eventually(lambda: theirs.register("t", '"int"').status == 200, what="Karapace forwards")
        assert ours.register("u", '"long"').json["id"] == 3
        eventually(lambda: theirs.ask("GET", "/subjects").json == ["s", "t", "u"], what="all subjects")
        assert ours.ask("GET", "/subjects").json == ["s", "t", "u"]


def register_references(registry: Instance) -> None:
    """Register Protobuf and Avro schemas that use others."""
    money = [{"name": "money.proto", "subject": "money", "version": 1}]
    customer = [{"name": "shop.Customer", "subject": "customer", "version": 1}]
    kinds = [
        ("money", MONEY, "PROTOBUF", []),
        ("payment", PAYMENT, "PROTOBUF", money),
        ("customer", CUSTOMER, "AVRO", []),
        ("invoice", INVOICE, "AVRO", customer),
    ]
    ids = [registry.register(name, text, schemaType=kind, references=of) for name, text, kind, of in kinds]
    assert [each.json.get("id") for each in ids] == [1, 2, 3, 4], [each.body for each in ids]


def seen_references(registry: Instance) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("money", "payment", "customer", "invoice"):
        version = registry.ask("GET", f"/subjects/{name}/versions/1").json
        is_json = version.get("schemaType", "AVRO") == "AVRO"
        text = json.loads(version["schema"]) if is_json else "".join(version["schema"].split())
        found[name] = (version["id"], text, version.get("references") or [])
        found[f"{name} used by"] = registry.ask("GET", f"/subjects/{name}/versions/1/referencedby").json
    # A schema that is used cannot be removed.
    found["refused"] = registry.ask("DELETE", "/subjects/money/versions/1").json["error_code"]
    return found


@pytest.mark.parametrize("first", ["karapace", "ours"])
def test_protobuf_and_references_are_handed_over(cluster: Cluster, first: str) -> None:
    name = f"references-{first}"

    def registries() -> Iterator[Instance]:
        for which in ("karapace", "ours") if first == "karapace" else ("ours", "karapace"):
            if which == "ours":
                with instances(cluster.bootstrap_servers, 1, settings(name)) as [ours]:
                    if first == "karapace":
                        eventually(lambda: ours.register("ready", '"int"').status == 200, what="ours leads")
                    yield ours
            else:
                with karapace(cluster.bootstrap_servers, f"_schemas_{name}", name) as theirs:
                    yield theirs.wait_leading()

    running = registries()
    writer = next(running)
    register_references(writer)
    before = seen_references(writer)
    reader = next(running)
    assert seen_references(reader) == before
    again = reader.register(
        "payment",
        PAYMENT,
        schemaType="PROTOBUF",
        references=[{"name": "money.proto", "subject": "money", "version": 1}],
    )
    assert again.json["id"] == before["payment"][0]
    running.close()


def test_what_karapace_does_not_have_survives_it(cluster: Cluster) -> None:
    """Modes, imported ids, contexts, aliases, contracts and normalized schemas."""
    rules = {
        "domainRules": [{"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "true"}]
    }
    metadata = {"properties": {"owner": "shop"}, "tags": {"Order.id": ["PII"]}, "sensitive": ["owner"]}
    paths = [
        *("/mode/locked", "/mode/imported", "/config/alias", "/contexts", "/subjects?subjectPrefix=:*:"),
        *("/subjects/imported/versions/7", "/subjects/contract/versions/1", "/subjects/normal/versions/1"),
        *(
            "/subjects/:.team:orders/versions/1",
            "/schemas/ids/1?subject=:.team:",
            "/subjects/alias/versions/1",
        ),
    ]

    def all_of(registry: Instance) -> dict[str, Any]:
        found = {path: registry.ask("GET", path).json for path in paths}
        return {path: _without_time(answer) for path, answer in found.items()}

    with instances(cluster.bootstrap_servers, 1, settings("ours_only")) as [ours]:
        for method, path, body in (
            ("PUT", "/mode/imported", {"mode": "IMPORT"}),
            ("POST", "/subjects/imported/versions", {"schema": PRICED, "id": 4711, "version": 7}),
            (
                "POST",
                "/subjects/contract/versions",
                {"schema": ORDER, "metadata": metadata, "ruleSet": rules},
            ),
            ("POST", "/subjects/normal/versions?normalize=true", {"schema": PERSON, "schemaType": "JSON"}),
            ("POST", "/subjects/:.team:orders/versions", {"schema": ORDER}),
            ("PUT", "/config/alias", {"alias": "contract"}),
            ("PUT", "/mode/locked", {"mode": "READONLY"}),
        ):
            answer = ours.ask(method, path, body)
            assert answer.status == 200, (path, answer.body)
        before = all_of(ours)
    with karapace(cluster.bootstrap_servers, "_schemas_ours_only", "ours_only") as theirs:
        theirs.wait_leading()
        written = theirs.register("theirs", '"bytes"').json["id"]
        assert written > 4711
    with instances(cluster.bootstrap_servers, 1, settings("ours_only")) as [ours]:
        assert all_of(ours).pop("/mode/locked") == before["/mode/locked"]
        after = all_of(ours)
        subjects = "/subjects?subjectPrefix=:*:"
        assert set(after.pop(subjects)) == {*before.pop(subjects), "theirs"}
        assert after == before
        eventually(lambda: ours.register("later", '"float"').status == 200, what="ours leads")
        assert ours.register("later", '"float"').json["id"] == written + 1


def _without_time(answer: Any) -> Any:
    return (
        {name: value for name, value in answer.items() if name != "ts"}
        if isinstance(answer, dict)
        else answer
    )
