"""No acknowledged record is lost under faults of nodes and network.

`MOLDAU_CHAOS_SECONDS` is the duration (default 20), `MOLDAU_CHAOS_SEED` determines the order of faults,
`MOLDAU_CHAOS_NODES` is the number of nodes (three of them are voters). The nodes' output is kept in the
test's folder, which is named if a rule is violated.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.testing import Cluster
from tests.integration.chaos.namespaces import NamespaceCluster, available
from tests.integration.chaos.run import CONFIG, run

SECONDS = float(os.environ.get("MOLDAU_CHAOS_SECONDS", "20"))
SEED = int(os.environ.get("MOLDAU_CHAOS_SEED", "1"))
NODES = int(os.environ.get("MOLDAU_CHAOS_NODES", "3"))

pytestmark = pytest.mark.timeout(SECONDS + 240)


@pytest.fixture(autouse=True)
def quiet_clients() -> Iterator[None]:
    """Silence two libraries that log a line for every failed request."""
    loggers = [logging.getLogger(name) for name in ("aiokafka", "kafka")]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    yield
    for logger in loggers:
        logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize(("security", "seconds"), [("PLAINTEXT", SECONDS), ("SCRAM-SHA-512", SECONDS / 2)])
def test_no_acknowledged_record_is_lost_under_process_faults(
    tmp_path: Path, security: str, seconds: float
) -> None:
    """With SCRAM, all clients and nodes connect over SASL_SSL."""
    folder = tmp_path / "cluster"
    cluster = Cluster(brokers=NODES, config=CONFIG, data_dir=folder, start_timeout=90, security=security)
    try:
        run(cluster.start(), SEED, seconds)
    finally:
        for node in cluster.nodes:
            node.end()
        cluster.close()


@pytest.mark.skipif(not available(), reason="needs root, Linux and the command ip")
def test_no_acknowledged_record_is_lost_under_network_partitions(tmp_path: Path) -> None:
    with NamespaceCluster(tmp_path, CONFIG) as cluster:
        run(cluster, SEED, SECONDS / 2)
