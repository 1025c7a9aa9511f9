"""Descriptions of new topics."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.http.errors import ApiError
from moldau.rest.v3.topics import _new_topic


def test_configs_without_a_value_keep_their_default() -> None:
    configs = [
        {"name": "cleanup.policy", "value": None},
        {"name": "retention.ms", "value": 5},
        {"name": "preallocate", "value": True},
    ]
    topic = _new_topic({"topic_name": "t", "partitions_count": "3", "configs": configs})
    assert topic.configs == {"retention.ms": "5", "preallocate": "true"}
    assert (topic.partitions, topic.replication_factor) == (3, -1)


@pytest.mark.parametrize(
    "body",
    [
        {"partitions_count": 1e300},
        {"partitions_count": 1 << 31},
        {"partitions_count": -7},
        {"partitions_count": []},
        {"replication_factor": 1 << 15},
        {"replicas_assignments": {"0": [1 << 31]}},
        {"replicas_assignments": {"²": [1]}},
        {"replicas_assignments": [1]},
        {"configs": [{"name": 1, "value": "x"}]},
        {"configs": [{"name": "retention.ms", "value": {}}]},
        {"configs": 3},
    ],
)
def test_descriptions_that_are_not_valid(body: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refused:
        _new_topic({"topic_name": "t", **body})
    assert refused.value.status == 400
