"""The JSON of offsets in checkpoints."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.base.ids import TopicPartition, Uuid
from moldau.pipelines.source.errors import ForeignCheckpoint
from moldau.pipelines.source.offsets import EXTRA, SourceOffset, from_json

partitions = st.builds(TopicPartition, st.sampled_from(["a", "b.c", "d-0"]), st.integers(0, 12))
positions = st.dictionaries(partitions, st.integers(0, 2**62), max_size=5)
written = st.builds(
    SourceOffset,
    positions,
    st.none() | positions,
    st.dictionaries(partitions, st.lists(st.integers(0, 2**62), min_size=1, max_size=3), max_size=3),
    st.frozensets(st.sampled_from(["a", "b.c"])),
    st.dictionaries(st.sampled_from(["a", "b.c"]), st.binary(min_size=16, max_size=16).map(Uuid)),
)


@given(written)
def test_json_round_trip(offset: SourceOffset) -> None:
    text = json.dumps(offset.to_json())
    assert from_json(json.loads(text)) == offset
    assert json.dumps(from_json(json.loads(text)).to_json()) == text


def test_json_of_sparks_kafka_connector() -> None:
    a2, a10, b0 = TopicPartition("a", 2), TopicPartition("a", 10), TopicPartition("b", 0)
    assert (
        json.dumps(SourceOffset({b0: 1, a10: 3, a2: 2}).to_json())
        == '{"a": {"2": 2, "10": 3}, "b": {"0": 1}}'
    )
    assert from_json({"a": {"2": 2}}) == SourceOffset({a2: 2})
    assert re.fullmatch("[a-zA-Z0-9._-]+", EXTRA) is None, "it could be the name of a topic"


@pytest.mark.parametrize(
    "foreign",
    [
        {"logOffset": 3},
        {"a": [1]},
        {"a": {"x": 1}},
        {"a": {"0": "y"}},
        {"a": {"0": 1}, EXTRA: {"ids": {"a": "short"}}},
    ],
)
def test_checkpoint_of_another_source_is_refused(foreign: dict[str, object]) -> None:
    with pytest.raises(ForeignCheckpoint, match="Use another checkpointLocation"):
        from_json(foreign)
