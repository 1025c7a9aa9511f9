"""The pytest plugin: fixtures `kafka_cluster` (one per test) and `kafka_cluster_session` (one for all)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.testing.cluster import Cluster


@pytest.fixture
def kafka_cluster() -> Iterator[Cluster]:
    """A node of the test's own, empty, gone afterwards."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka_cluster_session() -> Iterator[Cluster]:
    """One node for the whole run; tests keep apart by their topics' names."""
    with Cluster() as cluster:
        yield cluster
