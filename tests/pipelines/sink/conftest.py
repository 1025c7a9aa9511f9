"""Topics on the broker that all tests of a worker share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster
from tests.pipelines.source.topics import Topics


@pytest.fixture(scope="session")
def topics(broker: Cluster | ApacheCluster) -> Iterator[Topics]:
    found = Topics(broker.bootstrap_servers)
    yield found
    found.close()
