"""The OpenAPI description has every operation of Confluent's v3, and refers only to schemas that exist."""

from __future__ import annotations

import json
import re

from moldau.rest.openapi.document import document, operation_id
from moldau.rest.openapi.page import page
from moldau.rest.openapi.routes import API_ROUTES
from moldau.rest.openapi.schemas import SCHEMAS

#: The operations of Confluent's REST Proxy 8.5, below `/v3/clusters`.
CONFLUENT = """
GET
GET /{cluster_id}
POST /{cluster_id}/acls:batch
GET POST DELETE /{cluster_id}/acls
GET /{cluster_id}/broker-configs
POST /{cluster_id}/broker-configs:alter
GET PUT DELETE /{cluster_id}/broker-configs/{name}
GET /{cluster_id}/brokers
GET /{cluster_id}/brokers/{broker_id}
GET /{cluster_id}/brokers/-/configs
GET /{cluster_id}/brokers/{broker_id}/configs
POST /{cluster_id}/brokers/{broker_id}/configs:alter
GET PUT DELETE /{cluster_id}/brokers/{broker_id}/configs/{name}
GET /{cluster_id}/brokers/{broker_id}/partition-replicas
GET /{cluster_id}/consumer-groups
GET /{cluster_id}/consumer-groups/{consumer_group_id}
GET /{cluster_id}/consumer-groups/{consumer_group_id}/consumers
GET /{cluster_id}/consumer-groups/{consumer_group_id}/lag-summary
GET /{cluster_id}/consumer-groups/{consumer_group_id}/lags
GET /{cluster_id}/consumer-groups/{consumer_group_id}/lags/{topic_name}/partitions/{partition_id}
GET /{cluster_id}/consumer-groups/{consumer_group_id}/consumers/{consumer_id}
GET /{cluster_id}/consumer-groups/{consumer_group_id}/consumers/{consumer_id}/assignments
GET /{cluster_id}/consumer-groups/{consumer_group_id}/consumers/{consumer_id}/assignments/{topic_name}/partitions/{partition_id}
GET POST /{cluster_id}/topics
GET PATCH DELETE /{cluster_id}/topics/{topic_name}
GET /{cluster_id}/topics/{topic_name}/configs
POST /{cluster_id}/topics/{topic_name}/configs:alter
GET PUT DELETE /{cluster_id}/topics/{topic_name}/configs/{name}
GET /{cluster_id}/topics/{topic_name}/partitions/{partition_id}/offset
GET /{cluster_id}/topics/{topic_name}/partitions
GET /{cluster_id}/topics/{topic_name}/partitions/{partition_id}
GET /{cluster_id}/topics/-/partitions/-/reassignment
GET /{cluster_id}/topics/{topic_name}/partitions/-/reassignment
GET /{cluster_id}/topics/{topic_name}/partitions/{partition_id}/reassignment
GET /{cluster_id}/topics/{topic_name}/partitions/{partition_id}/replicas
GET /{cluster_id}/topics/{topic_name}/partitions/{partition_id}/replicas/{broker_id}
GET /{cluster_id}/topics/-/configs
POST /{cluster_id}/topics/-/configs:alter
POST /{cluster_id}/topics/{topic_name}/records
POST /{cluster_id}/topics/{topic_name}/records:batch
"""  # noqa: E501  a path is a path


def confluent_operations() -> set[tuple[str, str]]:
    found = set()
    for line in CONFLUENT.strip().splitlines():
        *methods, last = line.split()
        path = last if last.startswith("/") else ""
        found |= {(method, f"/v3/clusters{path}") for method in (methods if path else [*methods, last])}
    return found


def test_all_operations_of_confluents_v3_exist() -> None:
    wanted = confluent_operations()
    assert len(wanted) == 51
    assert wanted - {(route.method, route.path) for route in API_ROUTES} == set()


def test_names_of_operations_are_distinct() -> None:
    assert len({operation_id(route) for route in API_ROUTES}) == len(API_ROUTES)


def test_references_name_existing_schemas() -> None:
    text = json.dumps(document(API_ROUTES, "1"))
    referenced = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert referenced == set(SCHEMAS)


def test_variables_of_paths_are_parameters() -> None:
    for path, operations in document(API_ROUTES, "1")["paths"].items():
        for operation in operations.values():
            declared = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
            assert declared == set(re.findall(r"\{(\w+)\}", path))


def test_the_page_shows_all_endpoints_and_loads_nothing() -> None:
    text = page(API_ROUTES, "1")
    assert all(route.path in text for route in API_ROUTES)
    assert "<script" not in text
    assert re.findall(r'(?:src|href)="(?!/)', text) == []
