"""A broker and `moldau registry`, and both clients of the registry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient

from moldau.client.registry import RegistryClient
from moldau.testing import Cluster
from tests.harness.registry.instances import running_registry


@pytest.fixture(scope="package")
def bootstrap() -> Iterator[str]:
    with Cluster() as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture(scope="package")
def registry_url(bootstrap: str) -> Iterator[str]:
    with running_registry(bootstrap) as registry:
        yield registry.url


@pytest.fixture
def ours(registry_url: str) -> Iterator[RegistryClient]:
    with RegistryClient(registry_url) as client:
        yield client


@pytest.fixture
def theirs(registry_url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry_url}) as client:
        yield client
