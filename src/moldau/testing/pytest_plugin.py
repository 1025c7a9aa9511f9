"""The pytest plugin: fixtures `kafka_cluster` (one per test) and `kafka_cluster_session` (one for all).

pytest loads this module in every run wherever Moldau is installed, so it imports nothing that pytest has not
imported already; the cluster comes with the first fixture that is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from moldau.testing.cluster import Cluster


@pytest.fixture
def kafka_cluster_config() -> dict[str, str | int | bool]:
    """Broker settings of `kafka_cluster`; define a fixture of this name to choose your own."""
    return {}


@pytest.fixture
def kafka_cluster_brokers() -> int:
    """How many nodes `kafka_cluster` has; define a fixture of this name to have more."""
    return 1


@pytest.fixture
def kafka_cluster(
    kafka_cluster_config: dict[str, str | int | bool], kafka_cluster_brokers: int
) -> Iterator[Cluster]:
    """A cluster of the test's own, empty, gone afterwards."""
    from moldau.testing.cluster import Cluster

    with Cluster(brokers=kafka_cluster_brokers, config=kafka_cluster_config) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka_cluster_session() -> Iterator[Cluster]:
    """One node for the whole run; tests keep apart by their topics' names."""
    from moldau.testing.cluster import Cluster

    with Cluster() as cluster:
        yield cluster
