"""A registry on the broker that all tests of a worker share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient

from moldau.testing import Cluster
from tests.harness.registry.instances import running_registry


@pytest.fixture(scope="session")
def registry_url(broker: Cluster) -> Iterator[str]:
    with running_registry(broker.bootstrap_servers) as registry:
        yield registry.url


@pytest.fixture(scope="session")
def confluent(registry_url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry_url}) as client:
        yield client
