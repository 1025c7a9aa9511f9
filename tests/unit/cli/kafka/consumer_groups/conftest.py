"""kafka-consumer-groups against a broker with consumer groups."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tests.harness.wire.fake_broker import FakeBroker
from tests.unit.cli.kafka.consumer_groups.groups_tool import (
    GroupsTool,
    committed,
    deleted,
    described,
    ends,
    leaders,
    listed,
    partitions,
)


@pytest.fixture
def groups(capsys: pytest.CaptureFixture[str]) -> Any:
    broker = FakeBroker(
        {
            ApiKey.LIST_GROUPS: listed,
            ApiKey.CONSUMER_GROUP_DESCRIBE: described,
            ApiKey.DELETE_GROUPS: deleted,
            ApiKey.OFFSET_FETCH: committed,
            ApiKey.DESCRIBE_TOPIC_PARTITIONS: partitions,
            ApiKey.LIST_OFFSETS: ends,
            ApiKey.METADATA: lambda request: leaders(broker),
            ApiKey.FIND_COORDINATOR: lambda request: FindCoordinatorResponse(
                coordinators=[
                    Coordinator(key=key, node_id=1, host="127.0.0.1", port=broker.port, error_message=None)
                    for key in request.coordinator_keys
                ]
            ),
        }
    )
    with broker:
        yield GroupsTool(broker, capsys)
