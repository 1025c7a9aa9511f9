"""Nodes of the differential tests alone: some scenes expect that no test has created the internal topics."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster
from tests.interop.conftest import Node


@pytest.fixture(scope="session")
def apache(libs: Path) -> Iterator[ApacheCluster]:
    with ApacheCluster(libs=libs) as node:
        yield node


@pytest.fixture(scope="session")
def moldau(libs: Path) -> Iterator[Node]:
    apache_twice = os.environ.get("MOLDAU_TEST_BROKER") == "apache"
    with ApacheCluster(libs=libs) if apache_twice else Cluster() as node:
        yield node
