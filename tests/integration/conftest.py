"""Nodes and topics for the tests that run real clients.

All tests share one node and keep apart by the names of their topics. A test that kills its node, fills
its disk or needs settings of its own starts another with `start_node`.

The same tests run against Apache Kafka, which is how a test is proved right:
`MOLDAU_TEST_BOOTSTRAP=host:port` names a running broker to use as the shared node, and
`MOLDAU_TEST_BROKER=apache` starts Apache Kafka (jars in `KAFKA_LIBS`) wherever a test starts a node.
"""

from __future__ import annotations

import gc
import os
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster
from tests.harness.tools import Tools

Node = Cluster | ApacheCluster
StartNode = Callable[..., Node]


def runs_apache() -> bool:
    return os.environ.get("MOLDAU_TEST_BROKER") == "apache"


def new_node(**arguments: Any) -> Node:
    return ApacheCluster(**arguments) if runs_apache() else Cluster(**arguments)


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """The address of the node that all tests share."""
    running = os.environ.get("MOLDAU_TEST_BOOTSTRAP")
    if running:
        yield running
        return
    with new_node() as node:
        yield node.bootstrap_servers
        # Collect unclosed clients before their node stops, or they log errors for ever.
        gc.collect()


@pytest.fixture
def tools(bootstrap: str) -> Tools:
    return Tools(bootstrap)


@pytest.fixture
def start_node() -> Iterator[StartNode]:
    """Starts nodes of the test's own: `start_node(config={...})`; they are gone afterwards."""
    if os.environ.get("MOLDAU_TEST_BOOTSTRAP") and not runs_apache():
        pytest.skip("MOLDAU_TEST_BOOTSTRAP names a running broker and this test starts its own node")
    nodes: list[Node] = []

    def start(**arguments: Any) -> Node:
        node = new_node(**arguments)
        nodes.append(node)
        return node.start()

    yield start
    for node in nodes:
        node.close()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """An unused topic name; the test creates the topic, or a client does by using it."""
    readable = re.sub(r"[^A-Za-z0-9._-]", "-", request.node.name)[:60]
    return f"{readable}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def on_moldau() -> bool:
    """False when the node under test is Apache Kafka, for the listed differences."""
    return not runs_apache() and not os.environ.get("MOLDAU_TEST_BOOTSTRAP")


@pytest.fixture(scope="module")
def three(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three brokers for a module, with the settings it has in `CONFIG`."""
    with Cluster(brokers=3, config=request.module.CONFIG) as cluster:
        yield cluster


@pytest.fixture
def cluster(three: Cluster) -> Cluster:
    """The three brokers, all of them running."""
    three.start()
    three.wait_for_brokers()
    return three
