"""Two clusters, and a mirror between them, which all tests here share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from moldau.client.admin.client import AdminClient
from moldau.testing import Cluster
from tests.harness.mirror import MirrorProcess, mm2_properties


class Pair(NamedTuple):
    """Bootstrap servers and admin clients of clusters `a` and `b`."""

    a: str
    b: str
    admin_a: AdminClient
    admin_b: AdminClient


#: A process that was killed is replaced, or may start again, after this time.
SHORT_SESSION = {"session.timeout.ms": "1500", "heartbeat.interval.ms": "300"}


@pytest.fixture(scope="session")
def pair() -> Iterator[Pair]:
    config = {
        "log.cleaner.backoff.ms": "200",
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "500",
    }
    with (
        Cluster(config=config) as a,
        Cluster(config=config) as b,
        AdminClient(a.bootstrap_servers) as admin_a,
        AdminClient(b.bootstrap_servers) as admin_b,
    ):
        yield Pair(a.bootstrap_servers, b.bootstrap_servers, admin_a, admin_b)


@pytest.fixture(scope="session")
def mirror(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MirrorProcess]:
    """A mirror from a to b that tests may kill and start again."""
    settings = {
        "sync.group.offsets.enabled": "true",
        "topics.exclude": "own-.*, .*internal, __.*",
        **SHORT_SESSION,
    }
    with MirrorProcess(
        tmp_path_factory.mktemp("mirror"), mm2_properties(pair.a, pair.b, settings)
    ) as process:
        yield process
