"""The REST proxy's loads: producing over v2 and v3, and reading as a consumer instance of v2."""

from __future__ import annotations

import base64
import json
import statistics
import sys
import time

from benchmarks.services.service import Service, fill
from benchmarks.services.wrk import Requests
from benchmarks.workloads import RECORDS, REQUESTS, Figures
from moldau.client import AdminClient
from moldau.client.admin.topic_types import NewTopic
from moldau.testing import Cluster

BATCH = "v2 produce, 100 records a request"
SINGLE = "v2 produce, 1 record a request"
V3 = "v3 produce, 1 record a request"
CONSUME = "v2 consume, 100 B"
LATENCY = "produced over v2 to read by a waiting v2 consumer: p50, ms"
READY = "REST proxy: start to first response, s"
MEMORY = "REST proxy: memory after the loads, MB"
_JSON = "application/vnd.kafka.json.v2+json"
_BINARY = "application/vnd.kafka.binary.v2+json"
_V2 = "application/vnd.kafka.v2+json"
_RECORDS = 400_000
_SINGLE_RECORDS = 200


def measure(seconds: int, share: float) -> Figures:
    """Return the figures of one round, on a new broker."""
    with Cluster() as cluster:
        bootstrap = cluster.bootstrap_servers
        with AdminClient(bootstrap) as admin:
            admin.create_topics([NewTopic(name, 1) for name in ("produced", "consumed", "latency")])
        count = int(_RECORDS * share)
        fill(bootstrap, "consumed", ((None, "x" * 100) for _ in range(count)))
        with Service("rest", bootstrap, "/topics") as service:
            figures = {READY: service.start_seconds} | _produce(service, seconds)
            figures |= {f"{CONSUME}: {RECORDS}": _consume(service, count), LATENCY: _latency(service)}
            return figures | {MEMORY: service.megabytes}


def _produce(service: Service, seconds: int) -> Figures:
    clusters = json.loads(service.ask("GET", "/v3/clusters"))
    record = {
        "value": {"id": 4711, "name": "a record of about a hundred bytes", "amount": 12.5, "tags": ["a", "b"]}
    }
    v3 = {"value": {"type": "JSON", "data": record["value"]}}
    path = f"/v3/clusters/{clusters['data'][0]['cluster_id']}/topics/produced/records"
    loads = {
        BATCH: Requests(
            "/topics/produced", "POST", json.dumps({"records": [record] * 100}), {"Content-Type": _JSON}
        ),
        SINGLE: Requests(
            "/topics/produced", "POST", json.dumps({"records": [record]}), {"Content-Type": _JSON}
        ),
        V3: Requests(path, "POST", json.dumps(v3), {"Content-Type": "application/json"}),
    }
    figures: Figures = {}
    for name, requests in loads.items():
        figures |= service.under_load(name, requests, seconds)
    return figures | {f"{BATCH}: {RECORDS}": figures[f"{BATCH}: {REQUESTS}"] * 100}


class _Instance:
    """A consumer instance of v2 that reads a topic from its beginning."""

    def __init__(self, service: Service, name: str, topic: str) -> None:
        self._service = service
        self._base = f"/consumers/bench-{name}/instances/{name}"
        settings = {
            "name": name,
            "format": "binary",
            "auto.offset.reset": "earliest",
            "auto.commit.enable": "false",
            # Without it, a read lasts as long as its timeout.
            "fetch.min.bytes": "1",
        }
        service.ask("POST", f"/consumers/bench-{name}", json.dumps(settings), Content_Type=_V2)
        service.ask("POST", f"{self._base}/subscription", json.dumps({"topics": [topic]}), Content_Type=_V2)

    def read(self, wait_ms: int = 5000) -> list[bytes]:
        path = f"{self._base}/records?timeout={wait_ms}"
        records = json.loads(self._service.ask("GET", path, Accept=_BINARY))
        return [base64.b64decode(record["value"]) for record in records]

    def close(self) -> None:
        self._service.ask("DELETE", self._base, Content_Type=_V2)


def _consume(service: Service, count: int) -> float:
    """Return the records per second that one instance reads."""
    instance = _Instance(service, "reader", "consumed")
    received = len(_first(instance))
    begin, after = time.monotonic(), received
    while received < count:
        received += len(instance.read())
    spent = time.monotonic() - begin
    instance.close()
    return (received - after) / spent


def _latency(service: Service) -> float:
    """Return the time from a produce request to the response of a read that waits for its record."""
    instance = _Instance(service, "waiting", "latency")
    body = json.dumps({"records": [{"value": base64.b64encode(b"x" * 100).decode()}]})
    taken = []
    service.ask("POST", "/topics/latency", body, Content_Type=_BINARY)
    _first(instance)
    for _ in range(_SINGLE_RECORDS):
        begin = time.monotonic()
        service.ask("POST", "/topics/latency", body, Content_Type=_BINARY)
        while not instance.read():
            pass
        taken.append((time.monotonic() - begin) * 1000)
    instance.close()
    return statistics.median(taken)


def _first(instance: _Instance) -> list[bytes]:
    """Return the first records; the first reads may be empty, because the group is being joined."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if records := instance.read():
            return records
    sys.exit("the consumer instance received no record")
