"""Clusters whose nodes serve metrics: their ports, scrapes and probes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from moldau.local.ports import ReservedPorts
from moldau.server.metrics.slices import ScrapeSlice
from moldau.testing import Cluster

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


class CountedSlice(ScrapeSlice):
    """Counts the places at which a scrape may pause."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses = 0

    async def pause(self) -> None:
        self.pauses += 1
        await super().pause()


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class MeasuredCluster:
    cluster: Cluster
    #: By node id.
    ports: dict[int, int]

    def get(self, path: str, *, node: int = 1, headers: Mapping[str, str] | None = None) -> Answer:
        url = f"http://127.0.0.1:{self.ports[node]}{path}"
        request = urllib.request.Request(url, headers=dict(headers or {}))
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return Answer(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, dict(error.headers), error.read())

    def families(self, *, node: int = 1, open_metrics: bool = False) -> dict[str, Metric]:
        accept = OPEN_METRICS if open_metrics else "text/plain"
        text = self.get("/metrics", node=node, headers={"Accept": accept}).body.decode()
        parse = parse_open_metrics if open_metrics else parse_text
        return {family.name: family for family in parse(text)}

    def value(self, name: str, *, node: int = 1, **labels: str) -> float:
        """Return one sample; all its labels have to be given."""
        for family in self.families(node=node).values():
            for sample in family.samples:
                if sample.name == name and sample.labels == labels:
                    return sample.value
        raise AssertionError(f"node {node} has no {name} {labels}")

    def sums(self, name: str, **labels: str) -> float:
        """Return the sum over the nodes that run, of all samples with these labels, as `sum()` does."""
        return sum(
            sample.value
            for node in self.cluster.nodes
            if node.running
            for family in self.families(node=node.id).values()
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def readiness(self, node: int = 1) -> tuple[int, list[str]]:
        answer = self.get("/readyz", node=node)
        return answer.status, json.loads(answer.body)["reasons"]


@contextmanager
def measured_cluster(**arguments: Any) -> Iterator[MeasuredCluster]:
    """Start a cluster, as `Cluster(**arguments)`, with metrics on every node."""
    reserved = ReservedPorts("127.0.0.1")
    count = arguments.get("brokers", 1) + arguments.get("controllers", 0)
    ports = {number: reserved.choose() for number in range(1, count + 1)}
    node_config = {number: {"metrics.port": port} for number, port in ports.items()}
    for number, given in arguments.pop("node_config", {}).items():
        node_config[number] |= given
    try:
        with Cluster(**arguments, node_config=node_config) as cluster:
            yield MeasuredCluster(cluster, ports)
    finally:
        reserved.release()
