"""MirrorMaker 2's jars, and pairs of clusters of both kinds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from moldau.client.admin.client import AdminClient
from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster
from tests.interop import jars


class Pair(NamedTuple):
    """Bootstrap servers and admin clients of clusters `a` and `b`."""

    a: str
    b: str
    admin_a: AdminClient
    admin_b: AdminClient


@pytest.fixture(scope="session")
def mirror_libs(libs: Path) -> Path:
    try:
        return jars.mirror_libs()
    except jars.Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session", params=["apache", "moldau"])
def pair(request: pytest.FixtureRequest, libs: Path) -> Iterator[Pair]:
    """Two clusters of the same kind."""

    def cluster() -> ApacheCluster | Cluster:
        config = {"log.cleaner.backoff.ms": "200", "group.initial.rebalance.delay.ms": "0"}
        return (
            ApacheCluster(libs=libs, config=config) if request.param == "apache" else Cluster(config=config)
        )

    with (
        cluster() as a,
        cluster() as b,
        AdminClient(a.bootstrap_servers) as admin_a,
        AdminClient(b.bootstrap_servers) as admin_b,
    ):
        yield Pair(a.bootstrap_servers, b.bootstrap_servers, admin_a, admin_b)
