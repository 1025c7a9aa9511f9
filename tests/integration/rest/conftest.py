"""A broker, a registry and a REST proxy for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from moldau.testing import Cluster
from tests.harness.rest_proxy import Api, rest_proxy, service


class World(NamedTuple):
    cluster: Cluster
    registry: Api
    rest: Api
    cluster_id: str

    def v3(self, path: str) -> str:
        return f"/v3/clusters/{self.cluster_id}{path}"


@pytest.fixture(scope="package")
def world() -> Iterator[World]:
    with Cluster() as cluster, service("registry", cluster.bootstrap_servers) as (port, _):
        url = f"http://127.0.0.1:{port}"
        with rest_proxy(cluster.bootstrap_servers, "--registry", url) as rest:
            cluster_id = rest("GET", "/v3/clusters").body["data"][0]["cluster_id"]
            yield World(cluster, Api(port), rest, cluster_id)


@pytest.fixture
def rest(world: World) -> Api:
    return world.rest
