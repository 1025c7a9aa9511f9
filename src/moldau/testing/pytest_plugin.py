"""The pytest plugin: fixtures `kafka_cluster` (one per test) and `kafka_cluster_session` (one for all).

pytest loads this module in every run if Moldau is installed, so it imports only modules that pytest has
imported already; the cluster is imported by the first fixture that is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from moldau.testing.cluster import Cluster


@pytest.fixture
def kafka_cluster_config() -> dict[str, str | int | bool]:
    """Broker configs of `kafka_cluster`; define a fixture of this name to change them."""
    return {}


@pytest.fixture
def kafka_cluster_brokers() -> int:
    """Number of brokers of `kafka_cluster`; define a fixture of this name to change it."""
    return 1


@pytest.fixture
def kafka_cluster_security() -> str:
    """Security of `kafka_cluster`, as `security` of `Cluster`; define a fixture of this name to change it."""
    return "PLAINTEXT"


@pytest.fixture
def kafka_cluster(
    kafka_cluster_config: dict[str, str | int | bool],
    kafka_cluster_brokers: int,
    kafka_cluster_security: str,
) -> Iterator[Cluster]:
    """A new, empty cluster for one test."""
    from moldau.testing.cluster import Cluster

    with Cluster(
        brokers=kafka_cluster_brokers, config=kafka_cluster_config, security=kafka_cluster_security
    ) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka_cluster_session() -> Iterator[Cluster]:
    """One node for the whole run; use different topic names in each test."""
    from moldau.testing.cluster import Cluster

    with Cluster() as cluster:
        yield cluster
