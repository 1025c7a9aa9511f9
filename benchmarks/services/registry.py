"""The registry's loads: reading, looking up, checking, registering; starting with 100,000 schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator

from benchmarks.services.service import Service, fill
from benchmarks.services.wrk import Requests
from benchmarks.workloads import Figures
from moldau.client import AdminClient
from moldau.client.admin.topic_types import NewTopic
from moldau.testing import Cluster

BY_ID = "GET /schemas/ids/{id}"
LATEST = "GET …/versions/latest"
UNCACHED = "GET /schemas/ids/{id}, another of 100,000 each time"
LOOKUP = "look up a schema"
SAME = "register a registered schema"
CHECK = "compatibility check, 10 fields"
CHECK_NEW = "compatibility check, another schema each time"
NEW = "register a new schema, 8 connections"
NEW_ALONE = "register a new schema, 1 connection"
READY = "registry: start to first response, s"
MEMORY = "registry: memory after the loads, MB"
READY_FULL = "registry: start with 100,000 schemas, s"
MEMORY_FULL = "registry: memory with 100,000 schemas, MB"
_SCHEMAS = 100_000
_TYPE = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
_VERSIONS = "/subjects/orders-value/versions"


def measure(seconds: int, share: float) -> Figures:
    """Return the figures of one round, on a new broker."""
    with Cluster() as cluster:
        with Service("registry", cluster.bootstrap_servers, "/subjects") as service:
            figures = {READY: service.start_seconds} | _loads(service, seconds)
            figures[MEMORY] = service.megabytes
        return figures | _full(cluster.bootstrap_servers, seconds, max(1000, int(_SCHEMAS * share)))


def _loads(service: Service, seconds: int) -> Figures:
    order = _order(10)
    service.ask("POST", _VERSIONS, _request(order), Content_Type=_TYPE["Content-Type"])
    loads = {
        BY_ID: Requests("/schemas/ids/1"),
        LATEST: Requests(f"{_VERSIONS}/latest"),
        LOOKUP: _post("/subjects/orders-value", order),
        SAME: _post(_VERSIONS, order),
        CHECK: _post(f"/compatibility{_VERSIONS}/latest", _order(11)),
        CHECK_NEW: _post(f"/compatibility{_VERSIONS}/latest", _order(11, "optional_%d")),
        NEW: _post("/subjects/new-%d/versions", _order(10, "new_%d")),
    }
    figures: Figures = {}
    for name, requests in loads.items():
        figures |= service.under_load(name, requests, seconds)
    alone = _post("/subjects/alone-%d/versions", _order(10, "alone_%d"))
    return figures | service.under_load(NEW_ALONE, alone, seconds, connections=1)


def _order(fields: int, last: str = "last") -> str:
    """Return an Avro schema with this many fields, the last of which is optional."""
    required = [{"name": f"field_{number}", "type": "string"} for number in range(min(fields, 10) - 1)]
    optional = {"name": last, "type": ["null", "string"], "default": None}
    return json.dumps({"type": "record", "name": "Order", "fields": [*required, optional]})


def _request(schema: str) -> str:
    return json.dumps({"schema": schema})


def _post(path: str, schema: str) -> Requests:
    return Requests(path, "POST", _request(schema), _TYPE)


def _full(bootstrap: str, seconds: int, count: int) -> Figures:
    """Return the figures of a registry whose topic has many schemas."""
    topic = "_schemas_full"
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1, configs={"cleanup.policy": "compact"})])
    fill(bootstrap, topic, _records(count))
    options = ("--set", f"kafkastore.topic={topic}", "--set", "schema.registry.group.id=full")
    with Service("registry", bootstrap, f"/schemas/ids/{count}", options) as service:
        figures = {READY_FULL: service.start_seconds, MEMORY_FULL: service.megabytes}
        # Numbers of requests begin after those of the warm-up; ids are below the number of schemas.
        return figures | service.under_load(UNCACHED, Requests("/schemas/ids/%d", numbers=count), seconds)


def _records(count: int) -> Iterator[tuple[str, str]]:
    """Yield records as Confluent's registry writes them, ten versions a subject."""
    for number in range(count):
        subject, version = f"subject-{number // 10}-value", number % 10 + 1
        key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
        schema = json.dumps(json.loads(_order(10, f"added_{number}")), separators=(",", ":"))
        value = {"subject": subject, "version": version, "id": number + 1, "schema": schema, "deleted": False}
        yield json.dumps(key, separators=(",", ":")), json.dumps(value, separators=(",", ":"))
