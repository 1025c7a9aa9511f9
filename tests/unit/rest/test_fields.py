"""Bodies with fields that the description of the API does not have."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.http.errors import ApiError
from moldau.rest.fields import check_fields

CHANGE = {"name": "retention.ms", "value": "1"}
DATA = {"type": "STRING", "data": {"any": [{"thing": 1}]}, "subject": "s"}


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        (
            "ProduceBatch",
            {"entries": [{"id": "1", "value": DATA, "headers": [{"name": "h", "value": None}]}]},
        ),
        ("CreateTopic", {"topic_name": "t", "replicas_assignments": {"0": [1]}, "configs": [CHANGE]}),
        ("ConsumerInstanceV2", {"id": "i", "format": "json", "requestWaitMs": 1, "responseMinBytes": 1}),
        ("PositionsV2", {"offsets": [{"topic": "t", "partition": 0, "offset": 1, "metadata": ""}]}),
        ("Alter", {"data": [CHANGE]}),
        (
            "CommittedOffsets",
            {"offsets": [{"topic_name": "t", "partition_id": 0, "offset": 1, "headers": []}]},
        ),
        ("Alter", ["no object"]),
        ("Alter", {"data": "no list"}),
        ("Alter", None),
    ],
)
def test_known_fields_and_bodies_of_other_types(schema: str, body: Any) -> None:
    check_fields(schema, body)


@pytest.mark.parametrize(
    ("schema", "body", "field"),
    [
        ("ProduceBatch", {"records": []}, "records"),
        ("ProduceBatch", {"entries": [{"id": "1", "vlaue": DATA}]}, "vlaue"),
        ("ProduceBatch", {"entries": [{"id": "1", "value": {**DATA, "dtaa": 1}}]}, "dtaa"),
        ("CreateTopic", {"topic_name": "t", "partitions": 3}, "partitions"),
        ("Alter", {"data": [{}, {**CHANGE, "op": "SET"}]}, "op"),
        ("ConsumerInstanceV2", {"auto.offset.rest": "earliest"}, "auto.offset.rest"),
        ("SubscriptionV2", {"\ud800" + "x" * 200: 1}, "?" + "x" * 99),
    ],
)
def test_the_unknown_field_is_named(schema: str, body: Any, field: str) -> None:
    with pytest.raises(ApiError) as refused:
        check_fields(schema, body)
    assert (refused.value.status, refused.value.error_code) == (422, 422)
    assert refused.value.message == f"Unrecognized field: {field}"
