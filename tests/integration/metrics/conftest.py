"""Clusters whose nodes serve metrics, and scrapes of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.scraping import MeasuredCluster, measured_cluster


@pytest.fixture(scope="package")
def measured() -> Iterator[MeasuredCluster]:
    """One node with metrics, shared by the tests of this folder."""
    with measured_cluster() as cluster:
        yield cluster
