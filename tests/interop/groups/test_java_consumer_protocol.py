"""Java consumers with `group.protocol=consumer`: assignments, failover, regular expressions, and groups with
classic members.
"""

from __future__ import annotations

import uuid

import pytest

from tests.interop.conftest import Node
from tests.interop.java_oracle import ask_java

pytestmark = pytest.mark.interop

EXPECTED = [
    ["one has", "all 4, at least 4 each"],
    ["two share", "all 4, at least 2 each"],
    ["described", "Consumer 2"],
    ["one takes over", "all 4, at least 4 each"],
    ["goes on with", "[8, 9, 10, 11]"],
    ["a classic one has", "all 4, at least 4 each"],
    ["both kinds share", "all 4, at least 2 each"],
    ["the new kind takes over", "all 4, at least 4 each"],
    ["a pattern has", "all 4, at least 4 each"],
]


@pytest.mark.parametrize("broker", ["apache", "moldau"])
def test_java_consumers(broker: str, request: pytest.FixtureRequest) -> None:
    node: Node = request.getfixturevalue(broker)
    topic = f"java-consumer-protocol-{uuid.uuid4().hex[:6]}"
    assert ask_java("ConsumerProtocol", [node.bootstrap_servers, topic]) == EXPECTED
