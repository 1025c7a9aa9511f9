"""Valid JSON with values that Kafka's clients cannot take: an error, and a proxy that works as before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.rest_proxy import V2, Api
from tests.integration.rest.conftest import World
from tests.integration.rest.test_v2_consume import Instance, instance
from tests.integration.rest.test_v3_produce import produce

#: Half of a surrogate pair: valid in JSON as an escape, without a form in UTF-8.
HALF = "\ud800"


@pytest.fixture(scope="module")
def reader(world: World) -> Iterator[Instance]:
    with instance(world.rest, "g-values") as created:
        yield created


def test_names_without_a_form_in_utf8_are_refused(world: World, rest: Api, reader: Instance) -> None:
    header = {"headers": [{"name": HALF, "value": ""}], "value": {"type": "STRING", "data": "a"}}
    [answer] = produce(world, "values-names", header)
    assert answer["error_code"] == 400
    for path, body in (
        ("subscription", {"topics": [HALF]}),
        ("subscription", {"topic_pattern": HALF}),
        ("assignments", {"partitions": [{"topic": HALF, "partition": 0}]}),
        ("positions", {"offsets": [{"topic": HALF, "partition": 0, "offset": 0}]}),
    ):
        assert rest("POST", f"{reader.path}/{path}", body, V2).error == (422, 422), body
