"""A broker, a registry and a REST proxy for all tests of this folder.

`MOLDAU_TEST_BOOTSTRAP` names a broker to use instead, such as Apache Kafka.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from moldau.testing import Cluster
from tests.harness.rest_proxy import Api, rest_proxy, service


class World(NamedTuple):
    bootstrap: str
    registry: Api
    rest: Api
    cluster_id: str

    def v3(self, path: str) -> str:
        return f"/v3/clusters/{self.cluster_id}{path}"


@pytest.fixture(scope="package")
def bootstrap() -> Iterator[str]:
    given = os.environ.get("MOLDAU_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    with Cluster() as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture(scope="package")
def world(bootstrap: str) -> Iterator[World]:
    with service("registry", bootstrap) as (port, _):
        url = f"http://127.0.0.1:{port}"
        with rest_proxy(bootstrap, "--registry", url) as rest:
            cluster_id = rest("GET", "/v3/clusters").body["data"][0]["cluster_id"]
            yield World(bootstrap, Api(port), rest, cluster_id)


@pytest.fixture
def rest(world: World) -> Api:
    return world.rest
